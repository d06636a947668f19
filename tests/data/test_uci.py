"""The two UCI datasets: their facts, where their files are looked for, and downloads that go wrong."""

import hashlib
import http.server
import io
import re
import shutil
import threading
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from dmls2r_lite.command import cli
from dmls2r_lite.data import catalog, load_dataset, split_dataset

AIR = "air+quality.zip"


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch, tmp_path):
    """No test sees the user's cache, nor the network."""
    cache = tmp_path / "cache"
    monkeypatch.setattr(catalog, "cache_folder", lambda: cache)
    monkeypatch.setattr(catalog, "BASE_URL", "http://127.0.0.1:9/")  # nobody listens there
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)  # between retries
    return cache


def made_up_air_quality():
    """A file that is no copy of UCI's, but has its form."""
    head = (
        "Date;Time;CO(GT);PT08.S1(CO);NMHC(GT);C6H6(GT);PT08.S2(NMHC);NOx(GT);PT08.S3(NOx);NO2(GT);"
        "PT08.S4(NO2);PT08.S5(O3);T;RH;AH;;\r\n"
    )
    row = "{:02}/03/2004;{:02}.00.00;2,6;1360;150;{};1046;166;1056;113;1692;1268;13,6;48,9;0,7578;;\r\n"
    rows = [row.format(10 + i // 24, i % 24, f"{i},5" if i % 10 else "-200") for i in range(50)]
    return (head + "".join(rows) + ";;;;;;;;;;;;;;;;\r\n" * 3).encode()


def zipped(content, name="AirQualityUCI.csv"):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def genuine(monkeypatch):
    """The bytes of a zip file that is taken for that of Air Quality."""
    content = made_up_air_quality()
    lines = content.replace(b"\r\n", b"\n").removesuffix(b"\n")
    known = replace(catalog.DATASETS["air_quality"], sha256=hashlib.sha256(lines).hexdigest())
    monkeypatch.setitem(catalog.DATASETS, "air_quality", known)
    monkeypatch.delenv("DMLS2R_DATA", raising=False)
    return zipped(content)


def test_superconductivity(uci_folder, tmp_path, monkeypatch):
    data = load_dataset("superconductivity")
    y = data.target
    assert (y.min(), y.median(), y.max()) == (0.00021, 20, 185)
    assert (round(y.mean(), 4), round(y.std(), 4)) == (34.4212, 34.2544)
    assert not data.features.isna().any(axis=None)
    assert data.features.assign(y=y).duplicated().sum() == 66
    split = split_dataset(data, 20, 1000, seed=0)
    assert split.X_test.shape == (20243, 81)
    assert (split.X_train.min().min(), split.X_train.max().max()) == pytest.approx((0, 1))
    shutil.unpack_archive(uci_folder / "superconductivty+data.zip", tmp_path)
    monkeypatch.setenv("DMLS2R_DATA", str(tmp_path))
    unpacked = load_dataset("superconductivity")
    pd.testing.assert_frame_equal(unpacked.features, data.features)


class TestAirQuality:
    def test_facts(self, uci_folder):
        whole = load_dataset("air_quality")
        assert whole.features.shape == (9357, 14)
        data = whole.with_known_targets()
        y = data.target
        assert data.features.shape == (8991, 14)
        assert data.n_unlabeled == whole.n_unlabeled
        assert y.index.equals(whole.target.dropna().index)  # which splits are drawn from
        assert (y.min(), y.median(), y.max()) == (0.1, 8.2, 63.7)
        assert (round(y.mean(), 3), round(y.std(), 3)) == (10.083, 7.450)
        assert not (data.features == -200).any(axis=None)
        hours = data.features["Date"] * 24 + data.features["Time"]
        assert (hours.min(), hours.max() - hours.min()) == (18, 390 * 24 + 14 - 18)  # 2005-04-04 14:00

    def test_as_published(self, uci_folder):
        data = load_dataset("air_quality", missing="as_published")
        table = data.features.assign(**{"C6H6(GT)": data.target})
        n_missing = (table == -200).sum()
        some = {"CO(GT)": 1683, "NMHC(GT)": 8443, "NOx(GT)": 1639, "NO2(GT)": 1642, "Date": 0, "Time": 0}
        assert n_missing[list(some)].to_dict() == some
        assert (n_missing.drop(list(some)) == 366).all()
        assert (table.loc[table["T"] == -200, n_missing.index.drop(list(some))] == -200).all(axis=None)
        dropped = load_dataset("air_quality")
        median_mae = [(y - y.median()).abs().mean() for y in (data.target, dropped.target)]
        assert np.round(median_mae, 2).tolist() == [13.51, 5.59]  # what the sentinel does

    def test_another_target(self, uci_folder):
        data = load_dataset("air_quality", target="CO(GT)").with_known_targets()
        assert data.features.shape == (9357 - 1683, 14)
        assert (data.target_label, "C6H6(GT)" in data.features) == ("CO(GT) [mg/m³]", True)
        with pytest.raises(ValueError, match=r"target must name a column of air_quality \(Date, .*got 'CO'"):
            load_dataset("air_quality", target="CO")

    def test_a_copy_with_other_line_ends_is_recognised(self, uci_folder, tmp_path, monkeypatch):
        with zipfile.ZipFile(uci_folder / AIR) as archive:
            content = archive.read("AirQualityUCI.csv")
        copy = tmp_path / "AirQualityUCI.csv"
        copy.write_bytes(content.replace(b"\r\n", b"\n"))
        monkeypatch.setenv("DMLS2R_DATA", str(tmp_path))
        load_dataset("air_quality")
        copy.write_bytes(content.replace(b";11,9;", b";91,9;"))
        with pytest.raises(ValueError, match="does not hold the dataset air_quality as UCI publishes it"):
            load_dataset("air_quality")


class TestWhereFilesAre:
    def test_order(self, genuine, tmp_path, monkeypatch):
        given, cache = tmp_path / "given", tmp_path / "cache"
        for folder in (cache, given):
            folder.mkdir()
            (folder / AIR).write_bytes(genuine)
            if folder == given:
                monkeypatch.setenv("DMLS2R_DATA", str(given))
            assert catalog.find("air_quality") == folder / AIR
        (given / AIR).unlink()
        assert catalog.find("air_quality") == cache / AIR
        assert load_dataset("air_quality").features.shape == (50, 14)
        (given / "AirQualityUCI.csv").write_bytes(made_up_air_quality())
        assert load_dataset("air_quality").target.dropna().tolist()[:3] == [1.5, 2.5, 3.5]
        assert load_dataset("air_quality", missing="as_published").target.notna().all()

    def test_a_wrong_folder_is_an_error(self, tmp_path, monkeypatch):
        monkeypatch.setenv("DMLS2R_DATA", str(tmp_path / "nowhere"))
        with pytest.raises(NotADirectoryError, match=r"DMLS2R_DATA must name a folder, got .*nowhere"):
            load_dataset("air_quality")

    def test_damaged_files_are_named(self, genuine, tmp_path, monkeypatch):
        path = tmp_path / AIR
        monkeypatch.setenv("DMLS2R_DATA", str(tmp_path))
        damaged, other = "is damaged or holds no AirQualityUCI.csv", "does not hold the dataset air_quality"
        cases = {b"no zip": damaged, genuine[:-50]: damaged, zipped("", "x.csv"): damaged, zipped("x"): other}
        for content, message in cases.items():
            path.write_bytes(content)
            with pytest.raises(ValueError, match=re.escape(f"{path} {message}")):
                load_dataset("air_quality")

    def test_offline(self, genuine, empty_cache, tmp_path):
        how = r"get http://127.0.0.1:9/360/air\+quality.zip with a browser, .* variable DMLS2R_DATA"
        with pytest.raises(ConnectionError, match=how):
            load_dataset("air_quality")
        run = ["run", "air_quality", "--only", "00", "--output-dir", str(tmp_path / "runs")]
        for command in (run, ["datasets", "fetch", "air_quality"]):
            result = CliRunner().invoke(cli.main, command)
            assert result.exit_code == 1
            assert result.output.count("Error:") == 1
            assert "cannot download the dataset air_quality: get " in result.output
        assert not (tmp_path / "runs").exists()
        assert [*empty_cache.iterdir()] == []

    def test_datasets_command(self, genuine, tmp_path, monkeypatch):
        table = CliRunner().invoke(cli.main, ["datasets"]).output
        assert re.search(r"^air_quality +9357 +14 +C6H6\(GT\) \[µg/m³\] +no$", table, flags=re.M)
        assert re.search(r"^boston .* yes$", table, flags=re.M)
        assert "dmls2r datasets fetch air_quality" in " ".join(table.split())
        (tmp_path / AIR).write_bytes(genuine)
        monkeypatch.setenv("DMLS2R_DATA", str(tmp_path))
        table = CliRunner().invoke(cli.main, ["datasets"]).output
        assert re.search(r"^air_quality .* yes$", table, flags=re.M)
        fetched = CliRunner().invoke(cli.main, ["datasets", "fetch", "air_quality"])
        assert fetched.output == f"air_quality is in {tmp_path / AIR}\n"

        for name, message in {
            "boston": "'boston'; known are supercond",
            "iris": "unknown dataset from UCI",
        }.items():
            result = CliRunner().invoke(cli.main, ["datasets", "fetch", name])
            assert result.exit_code == 1
            assert message in result.output


class TestDownload:
    @pytest.fixture
    def serve(self, monkeypatch):
        """Serve what a function of the number of the request says: content, and how much of it is sent."""
        answers, requests = [], []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                requests.append(self.path)
                content, n_sent = answers[0](len(requests))
                self.send_response(200 if content else 404)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[:n_sent])

            def log_message(self, *args):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            monkeypatch.setattr(catalog, "BASE_URL", f"http://127.0.0.1:{server.server_port}/")
            yield lambda answer: answers.append(answer) or requests
            server.shutdown()

    def kept(self, cache):
        return sorted(path.name for path in cache.iterdir())

    def test_arrives_once(self, serve, genuine, empty_cache):
        requests = serve(lambda number: (genuine, None))
        for _ in range(2):
            assert load_dataset("air_quality").target.notna().sum() == 45
        assert (requests, self.kept(empty_cache)) == (["/360/air+quality.zip"], [AIR])

    def test_cut_once_and_tried_again(self, serve, genuine, empty_cache):
        requests = serve(lambda number: (genuine, 100 if number == 1 else None))
        assert load_dataset("air_quality").target.notna().sum() == 45
        assert (len(requests), self.kept(empty_cache)) == (2, [AIR])

    @pytest.mark.parametrize(
        ("answer", "error", "message"),
        [
            (b"<html>please log in</html>", ValueError, "holds no AirQualityUCI.csv"),
            (b"", ConnectionError, "cannot download the dataset air_quality"),
            (zipped("Date;Time\n1;2\n"), ValueError, "does not hold the dataset air_quality"),
            (None, ConnectionError, "cannot download the dataset air_quality"),  # cut in the middle
        ],
    )
    def test_something_else_arrives(self, serve, genuine, empty_cache, answer, error, message):
        serve(lambda number: (genuine, len(genuine) // 2) if answer is None else (answer, None))
        with pytest.raises(error, match=message):
            load_dataset("air_quality")
        assert self.kept(empty_cache) == []
