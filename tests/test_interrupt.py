"""An interrupt while a notebook trains keeps the model: in a real kernel, interrupted as Jupyter does."""

import pytest
from jupyter_client.manager import start_new_kernel

TRAIN = """
from dmls2r_lite.data import load_dataset, split_dataset
from dmls2r_lite.estimators import DMLS2RRegressor
split = split_dataset(load_dataset("toy"), 20, 50, 0)
model = DMLS2RRegressor(n_epochs=10**6, callback=lambda network, row: print(row["epoch"], flush=True))
model.fit(split.X_train, split.y_train)
"""
LOOK = "print(model.predict(split.X_test).shape == split.y_test.shape, 0 < len(model.history_) < 10**6)"


@pytest.mark.slow
def test_interrupt_in_a_kernel():
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        client.execute(TRAIN)
        epochs = 0
        while epochs < 5:
            message = client.get_iopub_msg(timeout=60)
            assert message["msg_type"] != "error", message["content"]
            epochs += message["msg_type"] == "stream" and message["content"]["name"] == "stdout"
        manager.interrupt_kernel()
        assert client.get_shell_msg(timeout=60)["content"]["status"] == "ok"
        printed = []
        client.execute_interactive(
            LOOK,
            timeout=60,
            output_hook=lambda message: printed.append(message["content"].get("text", "")),
        )
        assert "True True" in "".join(printed)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
