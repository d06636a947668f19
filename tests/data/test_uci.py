"""The two UCI datasets: their facts, where their files are looked for, and downloads that go wrong."""

import hashlib
import http.server
import re
import shutil
import threading
import zipfile

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from dmls2r_lite.command import cli
from dmls2r_lite.data import load_dataset, split_dataset, uci
from dmls2r_lite.data.catalog import DATASETS

AIR = "air+quality.zip"


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch, tmp_path):
    """No test sees the user's cache, nor the network."""
    cache = tmp_path / "cache"
    monkeypatch.setattr(uci, "cache_folder", lambda: cache)
    monkeypatch.setattr(uci, "BASE_URL", "http://127.0.0.1:9/")  # nobody listens there
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


def sha256(content):
    return hashlib.sha256(content.replace(b"\r\n", b"\n").removesuffix(b"\n")).hexdigest()


class TestSuperconductivity:
    @pytest.fixture
    def data(self, uci_folder):
        return load_dataset("superconductivity", data_dir=uci_folder)

    def test_facts(self, data):
        y = data.target
        assert data.features.shape == (21263, 81)
        assert data.target_label == "critical_temp [K]"
        assert (y.min(), y.median(), y.max()) == (0.00021, 20, 185)
        assert (round(y.mean(), 4), round(y.std(), 4)) == (34.4212, 34.2544)
        assert not data.features.isna().any(axis=None)
        assert data.features.assign(y=y).duplicated().sum() == 66
        assert data.n_unlabeled == 1000

    def test_split(self, data):
        split = split_dataset(data, 20, 1000, seed=0)
        assert split.X_test.shape == (20243, 81)
        assert (split.X_train.min().min(), split.X_train.max().max()) == pytest.approx((0, 1))


class TestAirQuality:
    def test_facts(self, uci_folder):
        whole = load_dataset("air_quality", data_dir=uci_folder)
        assert whole.features.shape == (9357, 14)
        data = whole.with_known_targets()
        y = data.target
        assert data.features.shape == (8991, 14)
        assert data.n_unlabeled == whole.n_unlabeled
        assert y.index.equals(whole.target.dropna().index)  # which splits are drawn from
        assert data.target_label == "C6H6(GT) [µg/m³]"
        assert (y.min(), y.median(), y.max()) == (0.1, 8.2, 63.7)
        assert (round(y.mean(), 3), round(y.std(), 3)) == (10.083, 7.450)
        assert not (data.features == -200).any(axis=None)
        hours = data.features["Date"] * 24 + data.features["Time"]
        assert (hours.min(), hours.max() - hours.min()) == (18, 390 * 24 + 14 - 18)  # 2005-04-04 14:00

    def test_as_published(self, uci_folder):
        data = load_dataset("air_quality", missing="as_published", data_dir=uci_folder)
        table = data.features.assign(**{"C6H6(GT)": data.target})
        assert data.features.shape == (9357, 14)
        n_missing = (table == -200).sum()
        others = dict.fromkeys(
            ["C6H6(GT)", "PT08.S1(CO)", "PT08.S2(NMHC)", "PT08.S3(NOx)", "PT08.S4(NO2)", "PT08.S5(O3)",
             "T", "RH", "AH"], 366,
        )  # fmt: skip
        some = {"CO(GT)": 1683, "NMHC(GT)": 8443, "NOx(GT)": 1639, "NO2(GT)": 1642}
        assert n_missing.to_dict() == {**others, **some, "Date": 0, "Time": 0}
        assert (table.loc[table["T"] == -200, list(others)] == -200).all(axis=None)  # the same rows
        median_mae = [
            (d.target - d.target.median()).abs().mean()
            for d in (data, load_dataset("air_quality", data_dir=uci_folder))
        ]
        assert np.round(median_mae, 2).tolist() == [13.51, 5.59]  # what the sentinel does

    def test_gaps_are_filled_from_labeled_and_unlabeled(self, uci_folder):
        data = load_dataset("air_quality", data_dir=uci_folder).with_known_targets()
        raw = split_dataset(data, 20, 1000, seed=0, scale_on="none")
        rows = raw.X_test.index[data.features.loc[raw.X_test.index, "NMHC(GT)"].isna()]
        train = data.features.loc[raw.X_train.index, "NMHC(GT)"]
        assert len(rows) > 1000
        assert (raw.X_test.loc[rows, "NMHC(GT)"] == train.median()).all()
        scaled = split_dataset(data, 20, 1000, seed=0)
        for X in (scaled.X_train, scaled.X_test):
            assert np.isfinite(X).all(axis=None)
        assert list(scaled.X_test) == list(data.features)

    def test_another_target(self, uci_folder):
        data = load_dataset("air_quality", target="CO(GT)", data_dir=uci_folder).with_known_targets()
        assert data.features.shape == (9357 - 1683, 14)
        assert "C6H6(GT)" in data.features
        assert data.target_label == "CO(GT) [mg/m³]"
        with pytest.raises(ValueError, match=r"target must name a column of air_quality \(Date, .*got 'CO'"):
            load_dataset("air_quality", target="CO", data_dir=uci_folder)

    def test_a_copy_with_other_line_ends_is_recognised(self, uci_folder, tmp_path):
        with zipfile.ZipFile(uci_folder / AIR) as archive:
            content = archive.read("AirQualityUCI.csv")
        (tmp_path / "AirQualityUCI.csv").write_bytes(content.replace(b"\r\n", b"\n"))
        load_dataset("air_quality", data_dir=tmp_path)
        (tmp_path / "AirQualityUCI.csv").write_bytes(content.replace(b";11,9;", b";91,9;"))
        with pytest.raises(ValueError, match="does not hold the dataset air_quality as UCI publishes it"):
            load_dataset("air_quality", data_dir=tmp_path)


@pytest.mark.parametrize("name", DATASETS)
def test_what_is_known_unread_is_true(name, request):
    if name in uci.FILES:
        request.getfixturevalue("uci_folder")
    data, known = load_dataset(name), DATASETS[name]
    assert data.features.shape == (known.n_rows, known.n_features)
    assert (data.target.name, data.unit) == (known.target, known.unit)
    assert (data.source, data.n_unlabeled) == (known.source, known.n_unlabeled)
    assert known.licence
    assert data.note.startswith(known.note)


class TestWhereFilesAre:
    @pytest.fixture(autouse=True)
    def accept_any_air_quality(self, monkeypatch):
        file = uci.FILES["air_quality"]
        accepting = uci.UCIFile(file.address, file.inner, sha256(made_up_air_quality()))
        monkeypatch.setitem(uci.FILES, "air_quality", accepting)
        monkeypatch.delenv("DMLS2R_DATA", raising=False)

    def write_zip(self, folder, content=None):
        folder.mkdir(exist_ok=True)
        with zipfile.ZipFile(folder / AIR, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("AirQualityUCI.csv", content or made_up_air_quality())

    def test_order(self, tmp_path, empty_cache, monkeypatch):
        folders = [tmp_path / name for name in ("given", "variable", "cache")]
        for folder in reversed(folders):
            self.write_zip(folder)
            if folder.name == "variable":
                monkeypatch.setenv("DMLS2R_DATA", str(folder))
            data_dir = folder if folder.name == "given" else None
            assert uci.find("air_quality", data_dir) == folder / AIR
        (folders[0] / AIR).unlink()
        assert uci.find("air_quality", folders[0]) == folders[1] / AIR
        assert load_dataset("air_quality").features.shape == (50, 14)

    def test_unpacked(self, tmp_path):
        (tmp_path / "AirQualityUCI.csv").write_bytes(made_up_air_quality())
        data = load_dataset("air_quality", data_dir=tmp_path)
        assert data.target.dropna().tolist()[:3] == [1.5, 2.5, 3.5]
        assert len(load_dataset("air_quality", missing="as_published", data_dir=tmp_path).target) == 50

    def test_a_wrong_folder_is_an_error(self, tmp_path, monkeypatch):
        with pytest.raises(NotADirectoryError, match=r"data_dir must name a folder, got .*nowhere"):
            load_dataset("air_quality", data_dir=tmp_path / "nowhere")
        monkeypatch.setenv("DMLS2R_DATA", str(tmp_path / "nowhere"))
        with pytest.raises(NotADirectoryError, match=r"DMLS2R_DATA must name a folder, got .*nowhere"):
            load_dataset("air_quality")

    def test_damaged_files_are_named(self, tmp_path):
        path = tmp_path / AIR
        path.write_bytes(b"not a zip file")
        with pytest.raises(ValueError, match=re.escape(f"{path} is damaged or holds no AirQualityUCI.csv")):
            load_dataset("air_quality", data_dir=tmp_path)
        self.write_zip(tmp_path)
        path.write_bytes(path.read_bytes()[:-50])
        with pytest.raises(ValueError, match="is damaged"):
            load_dataset("air_quality", data_dir=tmp_path)
        self.write_zip(tmp_path, "something else")
        with pytest.raises(ValueError, match="does not hold the dataset air_quality"):
            load_dataset("air_quality", data_dir=tmp_path)

    def test_offline(self, empty_cache):
        with pytest.raises(ConnectionError) as caught:
            load_dataset("air_quality")
        message = str(caught.value)
        assert "get http://127.0.0.1:9/360/air+quality.zip with a browser, put it into a folder" in message
        assert "environment variable DMLS2R_DATA" in message
        assert [path.name for path in empty_cache.iterdir()] in ([".lock"], [])

    @pytest.mark.parametrize(
        "command", [["run", "air_quality", "--only", "00"], ["datasets", "fetch", "air_quality"]]
    )
    def test_offline_command(self, command, tmp_path):
        if command[0] == "run":
            command = [*command, "--output-dir", str(tmp_path / "runs")]
        result = CliRunner().invoke(cli.main, command)
        assert result.exit_code == 1
        assert result.output.count("Error:") == 1
        assert "cannot download the dataset air_quality: get " in result.output
        assert "Traceback" not in result.output
        assert not (tmp_path / "runs").exists()

    def test_datasets_command(self, tmp_path, monkeypatch):
        table = CliRunner().invoke(cli.main, ["datasets"]).output
        assert re.search(r"^air_quality +9357 +14 +C6H6\(GT\) \[µg/m³\] +no$", table, flags=re.M)
        assert re.search(r"^boston .* yes$", table, flags=re.M)
        assert "dmls2r datasets fetch air_quality" in " ".join(table.split())
        self.write_zip(tmp_path / "data")
        monkeypatch.setenv("DMLS2R_DATA", str(tmp_path / "data"))
        table = CliRunner().invoke(cli.main, ["datasets"]).output
        assert re.search(r"^air_quality .* yes$", table, flags=re.M)
        fetched = CliRunner().invoke(cli.main, ["datasets", "fetch", "air_quality"])
        assert fetched.output == f"air_quality is in {tmp_path / 'data' / AIR}\n"

    @pytest.mark.parametrize(
        ("name", "message"),
        [("boston", "boston needs no file; from UCI come"), ("iris", "unknown dataset 'iris'")],
    )
    def test_fetch_of_others(self, name, message):
        result = CliRunner().invoke(cli.main, ["datasets", "fetch", name])
        assert result.exit_code == 1
        assert message in result.output


class TestDownload:
    @pytest.fixture
    def serve(self, monkeypatch, tmp_path):
        """Serve what a function of the number of the request says: content, and how much of it is sent."""
        servers = []

        def serve(answer):
            requests = []

            class Handler(http.server.BaseHTTPRequestHandler):
                def do_GET(self):
                    requests.append(self.path)
                    content, n_sent = answer(len(requests))
                    self.send_response(200 if content else 404)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content[:n_sent])

                def log_message(self, *args):
                    pass

            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            servers.append(server)
            monkeypatch.setattr(uci, "BASE_URL", f"http://127.0.0.1:{server.server_port}/")
            return requests

        yield serve
        for server in servers:
            server.shutdown()
            server.server_close()

    @pytest.fixture
    def zipped(self, monkeypatch, tmp_path):
        content = made_up_air_quality()
        file = uci.FILES["air_quality"]
        genuine = uci.UCIFile(file.address, file.inner, sha256(content))
        monkeypatch.setitem(uci.FILES, "air_quality", genuine)
        monkeypatch.delenv("DMLS2R_DATA", raising=False)
        path = tmp_path / "source.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(file.inner, content)
        return path.read_bytes()

    def kept(self, cache):
        return sorted(path.name for path in cache.iterdir() if path.name != ".lock")

    def test_arrives_once(self, serve, zipped, empty_cache):
        requests = serve(lambda number: (zipped, None))
        assert load_dataset("air_quality").target.notna().sum() == 45
        assert load_dataset("air_quality").target.notna().sum() == 45
        assert requests == ["/360/air+quality.zip"]
        assert self.kept(empty_cache) == [AIR]

    def test_cut_in_the_middle(self, serve, zipped, empty_cache):
        serve(lambda number: (zipped, len(zipped) // 2))
        with pytest.raises(ConnectionError, match="cannot download the dataset air_quality"):
            load_dataset("air_quality")
        assert self.kept(empty_cache) == []

    def test_cut_once_and_tried_again(self, serve, zipped, empty_cache):
        requests = serve(lambda number: (zipped, 100 if number == 1 else None))
        assert load_dataset("air_quality").target.notna().sum() == 45
        assert len(requests) == 2
        assert self.kept(empty_cache) == [AIR]

    @pytest.mark.parametrize("answer", [b"<html>please log in</html>", b""])
    def test_something_else_arrives(self, serve, zipped, empty_cache, answer):
        serve(lambda number: (answer, None))
        with pytest.raises((ValueError, ConnectionError), match=r"air_quality|AirQualityUCI"):
            load_dataset("air_quality")
        assert self.kept(empty_cache) == []

    def test_another_table_arrives(self, serve, zipped, empty_cache, tmp_path):
        other = tmp_path / "other.zip"
        with zipfile.ZipFile(other, "w") as archive:
            archive.writestr("AirQualityUCI.csv", "Date;Time\n1;2\n")
        serve(lambda number: (other.read_bytes(), None))
        with pytest.raises(ValueError, match="does not hold the dataset air_quality"):
            load_dataset("air_quality")
        assert self.kept(empty_cache) == []

    def test_leftovers_of_a_killed_download_go(self, serve, zipped, empty_cache):
        (empty_cache / ".unfinished").mkdir(parents=True)
        (empty_cache / ".unfinished" / AIR).write_bytes(zipped[:50])
        serve(lambda number: (zipped, None))
        uci.fetch("air_quality")
        assert self.kept(empty_cache) == [AIR]


def test_reading_is_the_same_from_zip_and_folder(uci_folder, tmp_path):
    shutil.unpack_archive(uci_folder / "superconductivty+data.zip", tmp_path)
    pd.testing.assert_frame_equal(
        load_dataset("superconductivity", data_dir=tmp_path).features,
        load_dataset("superconductivity", data_dir=uci_folder).features,
    )
