"""Functions that live in another process, called with copies of plain data.

A test calls a student's function as if it were here, and nothing that the function does reaches the test: no
other name, no other object, no file that only this process may read. Messages between the two are pickles of
Python's own plain types, and of these alone.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import io
import itertools
import math
import os
import pickle
import queue
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import IO, Any

import numpy as np
import pandas as pd
import torch
from IPython.core.interactiveshell import InteractiveShell

from . import checks

_END = ("end",)
_LONGEST = 20_000  # characters of what one call prints


class Stopped(RuntimeError):  # noqa: N818 - students read its name
    """The other process has ended, or was ended because it took too long."""


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is no plain data")


class Peer:
    """One end of a pair of processes that call each other's functions.

    Parameters
    ----------
    incoming, outgoing : binary file
        What the other end writes, and what it reads.
    """

    def __init__(self, incoming: IO[bytes], outgoing: IO[bytes]) -> None:
        self._deadline, self._seconds = math.inf, math.inf
        self._outgoing = outgoing
        self._objects: list[Any] = []  # that the other end may call
        self._messages: queue.Queue[Any] = queue.Queue()
        threading.Thread(target=self._read, args=(incoming,), daemon=True).start()

    def limit(self, seconds: float) -> None:
        """Let what is asked from now on take so long, all together."""
        self._deadline, self._seconds = time.monotonic() + seconds, seconds

    def ask(self, *message: Any) -> Any:
        """Send a request, and serve those of the other end until its answer is there.

        Raises
        ------
        Stopped
            If the other end ends, or gives no answer until the deadline.
        Exception
            Of the same kind and message as one that the request has raised.
        """
        __tracebackhide__ = True
        self._send(message)
        while True:
            kind, *content = self._receive()
            if kind == "value":
                return content[0]
            if kind == "error":
                raise _exception(*map(str, content))
            self.serve(kind, content)

    def serve(self, kind: str, content: list[Any]) -> None:
        """Answer one request."""
        try:
            answer: tuple[Any, ...] = ("value", self.handle(kind, *content))
        except BaseException as error:  # whatever a student's code may raise
            message = str(error)
            if message or not isinstance(error, NotImplementedError):
                message += checks.place_of(error)
            answer = ("error", type(error).__name__, message)
        self._send(answer)

    def handle(self, kind: str, *content: Any) -> Any:
        """The value of a request: here the other end may print, and call what it was given."""
        if kind == "print":
            print(str(content[0])[:_LONGEST], end="")
            return None
        if kind == "call":
            key, arguments, *_ = content
            return self.pack(self._objects[key](*map(self.unpack, arguments))), None, None
        raise ValueError(f"nothing is known of {kind!r}")

    def pack(self, value: Any) -> Any:
        """Plain data that stands for a value; what has none stays here, and gets a number."""
        if value is None or type(value) in (bool, int, float, str, bytes):
            return value
        with contextlib.suppress(Exception):  # a student's own type may do anything
            if isinstance(value, tuple | list | set):
                kind = next(k for k in (tuple, list, set) if isinstance(value, k))
                return (kind.__name__, [self.pack(entry) for entry in value])
            if isinstance(value, dict):
                return ("dict", [(self.pack(key), self.pack(entry)) for key, entry in value.items()])
            if isinstance(value, torch.Tensor):
                return ("tensor", self.pack(value.detach().cpu().numpy()))
            if isinstance(value, np.generic):
                return ("scalar", self.pack(np.asarray(value)))
            if isinstance(value, np.ndarray):
                if value.dtype.kind == "O":
                    return ("objects", value.shape, [self.pack(entry) for entry in value.flat])
                return ("array", value.shape, value.dtype.str, value.tobytes())
            if isinstance(value, pd.Series):
                series = (value.to_numpy(), value.index.to_numpy(), value.name, str(value.dtype))
                return ("series", *map(self.pack, series))
            if isinstance(value, pd.DataFrame):
                columns = [value.iloc[:, place] for place in range(value.shape[1])]
                frame = (columns, value.index.to_numpy(), list(value.columns))
                return ("frame", *map(self.pack, frame))
        if isinstance(value, Remote) and value._peer is self:
            return ("yours", value._key)
        self._objects.append(value)
        return ("mine", len(self._objects) - 1)

    def unpack(self, packed: Any) -> Any:
        """The value that plain data stands for."""
        if not isinstance(packed, tuple):
            return packed
        kind, *content = packed
        if kind in ("tuple", "list", "set"):
            return getattr(builtins, kind)(self.unpack(entry) for entry in content[0])
        if kind == "dict":
            return {self.unpack(key): self.unpack(entry) for key, entry in content[0]}
        if kind == "tensor":
            return torch.as_tensor(self.unpack(content[0]))
        if kind == "scalar":
            return self.unpack(content[0])[()]
        if kind == "objects":
            values = np.empty(len(content[1]), dtype=object)
            values[:] = [self.unpack(entry) for entry in content[1]]
            return values.reshape(content[0])
        if kind == "array":
            shape, dtype, data = content
            return np.frombuffer(data, dtype).reshape(shape).copy()
        if kind == "series":
            values, index, name, dtype = map(self.unpack, content)
            return pd.Series(values, index=index, name=name, dtype=dtype)
        if kind == "frame":
            columns, index, names = map(self.unpack, content)
            frame = pd.DataFrame(dict(enumerate(columns)), index=index)
            return frame.set_axis(names, axis="columns")
        return self._objects[content[0]] if kind == "yours" else Remote(self, int(content[0]))

    def _send(self, message: Any) -> None:
        try:
            pickle.dump(message, self._outgoing, protocol=5)
            self._outgoing.flush()
        except OSError:
            raise Stopped("it has ended Python") from None

    def _receive(self) -> Any:
        wait = None if self._deadline == math.inf else max(0.0, self._deadline - time.monotonic())
        try:
            message = self._messages.get(timeout=wait)
        except queue.Empty:
            raise Stopped(f"no end within {self._seconds:g} seconds") from None
        if message == _END:
            raise Stopped("it has ended Python")
        return message

    def _read(self, incoming: IO[bytes]) -> None:
        with contextlib.suppress(Exception):  # end of file, or no message of ours
            while isinstance(message := _Plain(incoming).load(), tuple) and message:
                self._messages.put(message)
        self._messages.put(_END)


class Remote:
    """Something in the other process: it can be called, and has attributes."""

    def __init__(self, peer: Any, key: int | str) -> None:
        self._peer, self._key = peer, key

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call it with copies of the arguments; gradients flow through it to those that ask for them."""
        __tracebackhide__ = True
        peer = self._peer
        places = [
            place
            for place, value in enumerate(arguments)
            if isinstance(value, torch.Tensor) and value.requires_grad and torch.is_grad_enabled()
        ]
        result, graph, state = peer.ask(
            "call",
            self._key,
            [peer.pack(value) for value in arguments],
            [(name, peer.pack(value)) for name, value in named.items()],
            places,
            _random_states(),
        )
        if state is not None:  # a function that uses a global random state should be seen to do so
            _set_random_states(state)
        if isinstance(result, tuple) and result[0] == "argument":
            return arguments[result[1]]
        value = peer.unpack(result)
        if graph is None:
            return value
        return _Through.apply(peer, graph, value, *(arguments[place] for place in places))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__code__":
            raise AttributeError(name)
        return self._peer.unpack(self._peer.ask("get", self._key, name))

    def __deepcopy__(self, memo: Any) -> Remote:
        return self


class _Through(torch.autograd.Function):
    """What the other process has computed, with gradients that it computes."""

    @staticmethod
    def forward(ctx: Any, peer: Any, graph: int, value: torch.Tensor, *inputs: torch.Tensor) -> torch.Tensor:
        ctx.peer, ctx.graph = peer, graph
        return value.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        found = ctx.peer.ask("gradients", ctx.graph, ctx.peer.pack(gradient))
        return None, None, None, *map(ctx.peer.unpack, found)


def _exception(kind: str, message: str) -> Exception:
    known = getattr(builtins, kind, None)
    if isinstance(known, type) and issubclass(known, Exception):
        with contextlib.suppress(TypeError):  # some take more than a message
            return known(message) if message else known()
    return RuntimeError(f"{kind}: {message}")


def _random_states() -> tuple[Any, ...]:
    """PyTorch's and NumPy's global ones, as plain data."""
    kind, numbers, *rest = np.random.get_state()  # noqa: NPY002 - students may use it
    return torch.random.get_rng_state().numpy().tobytes(), kind, np.asarray(numbers).tobytes(), *rest


def _set_random_states(states: tuple[Any, ...]) -> None:
    of_torch, kind, numbers, *rest = states
    torch.random.set_rng_state(torch.frombuffer(bytearray(of_torch), dtype=torch.uint8))
    np.random.set_state((kind, np.frombuffer(numbers, dtype=np.uint32), *rest))  # noqa: NPY002


class Worker(Peer):
    """The end that executes a student's cells, and calls the functions that they define."""

    def __init__(self, incoming: IO[bytes], outgoing: IO[bytes]) -> None:
        super().__init__(incoming, outgoing)
        self._shell = InteractiveShell.instance(colors="nocolor")
        self._graphs: dict[int, tuple[torch.Tensor, list[torch.Tensor]]] = {}
        self._numbers = itertools.count()  # of graphs

    def handle(self, kind: str, *content: Any) -> Any:
        """The value of a request of the tests."""
        return getattr(self, f"_{kind}")(*content)

    def _run(self, source: str) -> None:
        self._printing(lambda: self._shell.run_cell(source))

    def _define(self, source: str, problems: list[tuple[str, str | None]]) -> None:
        """What a test defines, for cells after it, and what came out; its checks are not made again."""
        names = self._shell.user_ns
        kept = {name: names[name] for name in ("check", "check_that") if name in names}
        names.update(dict.fromkeys(kept, lambda *_, **__: None))
        self._printing(lambda: self._shell.run_cell(source), silent=True)
        names.update(kept)
        checks.note_results(dict(problems))

    def _get(self, key: int | str, name: str) -> Any:
        return self.pack(getattr(self._find(key), name))

    def _call(
        self, key: int | str, arguments: list[Any], named: list[Any], places: list[int], state: Any
    ) -> Any:
        function = self._find(key)
        given = [self.unpack(value) for value in arguments]
        for place in places:
            given[place].requires_grad_()
        before = copy.deepcopy(given)
        _set_random_states(state)
        named_values = {name: self.unpack(value) for name, value in named}
        result = self._printing(lambda: function(*given, **named_values))
        problem = checks.changed_input(function, before, given)
        if problem:
            raise AssertionError(problem)
        now = _random_states()
        same = [place for place, value in enumerate(given) if value is result and value is not None]
        graph = None
        if isinstance(result, torch.Tensor) and result.requires_grad:
            graph = next(self._numbers)
            self._graphs[graph] = (result, [given[place] for place in places])
        packed = ("argument", same[0]) if same else self.pack(result)
        return packed, graph, None if now == state else now

    def _gradients(self, graph: int, gradient: Any) -> list[Any]:
        result, inputs = self._graphs.pop(graph)  # once, as in PyTorch: a training asks for many
        found = torch.autograd.grad(result, inputs, self.unpack(gradient), allow_unused=True)
        return [self.pack(value) for value in found]

    def _find(self, key: int | str) -> Any:
        if isinstance(key, int):
            return self._objects[key]
        if key not in self._shell.user_ns:
            raise NameError(f"name {key!r} is not defined")
        return self._shell.user_ns[key]

    def _printing(self, function: Callable[[], Any], silent: bool = False) -> Any:
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                return function()
        finally:
            if printed.getvalue() and not silent:
                self.ask("print", printed.getvalue()[:_LONGEST])

    def work(self) -> None:
        """Answer requests until the other end closes."""
        with contextlib.suppress(Stopped):
            while True:
                kind, *content = self._receive()
                self.serve(kind, content)


def set_limits(memory: int, disk: int) -> None:
    """Let this process have so many bytes of memory, and write so many to a file."""
    with contextlib.suppress(ImportError):  # not on Windows
        import resource

        limits = {resource.RLIMIT_DATA: memory, resource.RLIMIT_FSIZE: disk, resource.RLIMIT_CORE: 0}
        for kind, most in limits.items():
            resource.setrlimit(kind, (most, most))


def main(folder: str, memory: str, disk: str) -> None:
    """Work for whoever has started this process, by its standard input and output.

    Parameters
    ----------
    folder : str
        Its files are copied to where the cells run.
    memory, disk : str
        Limits, in bytes: of memory, and of a file.
    """
    set_limits(int(memory), int(disk))
    work = tempfile.mkdtemp()
    shutil.copytree(folder, work, symlinks=True, dirs_exist_ok=True)
    os.chdir(work)
    sys.path.insert(0, work)
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):  # what else is written there must not look like a message
        os.dup2(nothing, descriptor)
    with open(incoming, "rb") as requests, open(outgoing, "wb") as answers:
        Worker(requests, answers).work()


if __name__ == "__main__":
    main(*sys.argv[1:])
