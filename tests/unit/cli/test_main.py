"""The command line entry: exit codes, one line per error, nothing but data on stdout."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from transformer_mt import __version__
from transformer_mt.cli import main as entry
from transformer_mt.errors import CheckpointError, ConfigError, DataError, DivergenceError, UserError

Verb = Callable[[Callable[[argparse.Namespace], int]], None]


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch) -> Verb:
    """Makes `transformer-mt probe` run the given function."""

    def install(run: Callable[[argparse.Namespace], int]) -> None:
        module = ModuleType("transformer_mt.cli.probe")
        module.HELP = "A verb of the tests."  # type: ignore[attr-defined]
        module.run = run  # type: ignore[attr-defined]
        module.add_arguments = lambda parser: parser.add_argument("--checkpoint")  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "transformer_mt.cli.probe", module)
        monkeypatch.setattr(entry, "VERBS", ("probe",))

    return install


def failing(error: BaseException) -> Callable[[argparse.Namespace], int]:
    def run(args: argparse.Namespace) -> int:
        raise error

    return run


def test_the_exit_code_is_the_verbs(verb: Verb) -> None:
    """Pins that a verb's own code reaches the shell."""
    verb(lambda args: 7)
    assert entry.main(["probe"]) == 7


@pytest.mark.parametrize("kind", [ConfigError, DataError, DivergenceError, CheckpointError])
def test_a_user_error_is_one_line_with_its_code(
    verb: Verb, capsys: pytest.CaptureFixture[str], kind: type[UserError]
) -> None:
    """Pins B184: no traceback, nothing on stdout, the documented code."""
    verb(failing(kind("a.yaml:1:2: what; what to do")))
    assert entry.main(["probe"]) == kind.exit_code
    out, err = capsys.readouterr()
    assert (out, err) == ("", "transformer-mt: error: a.yaml:1:2: what; what to do\n")


def test_each_of_several_problems_has_its_line(verb: Verb, capsys: pytest.CaptureFixture[str]) -> None:
    """Pins that a reader of stderr finds every problem by the same prefix."""
    verb(failing(ConfigError("first\nsecond")))
    assert entry.main(["probe"]) == 2
    assert capsys.readouterr().err == "transformer-mt: error: first\ntransformer-mt: error: second\n"


def test_a_full_disk_is_no_traceback(verb: Verb, capsys: pytest.CaptureFixture[str]) -> None:
    """Pins that an error of the operating system names the file, the cause and what to do."""
    verb(failing(OSError(28, "No space left on device", "runs/x/model")))
    assert entry.main(["probe"]) == 3
    err = capsys.readouterr().err
    assert err == (
        "transformer-mt: error: runs/x/model: No space left on device; "
        "check the path, the permissions and the free space\n"
    )


def test_a_fault_of_the_program_is_shown_whole(verb: Verb) -> None:
    """Pins that only what a user can mend is shortened to a line: anything else must be found by us."""
    verb(failing(KeyError("ours")))
    with pytest.raises(KeyError, match="ours"):
        entry.main(["probe"])


PROBE = """
import sys, types
from transformer_mt.cli import main as entry
def run(args):
    {body}
    return 0
probe = types.SimpleNamespace(HELP="", add_arguments=lambda parser: None, run=run)
sys.modules["transformer_mt.cli.probe"] = probe
entry.VERBS = ("probe",)
sys.exit(entry.main(["probe"]))
"""
SHOW = "__import__('transformer_mt.cli.stream_output').cli.stream_output.show"


def test_an_interrupt_has_its_code() -> None:
    """Pins B186's lesser half: Ctrl-C gives 130 and one line, no traceback."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(body="raise KeyboardInterrupt")],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "transformer-mt: error: interrupted\n")


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    """Pins B183: `transformer-mt translate … | head -1` ends quietly."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROBE.format(body="for n in range(100000): print(n)")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout and process.stderr
    assert process.stdout.readline() == b"0\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=30) == 0
    process.stderr.close()


def test_the_version_is_printed(verb: Verb, capsys: pytest.CaptureFixture[str]) -> None:
    """Pins that --version needs no verb and tells the package's version."""
    verb(lambda args: 0)
    with pytest.raises(SystemExit) as stop:
        entry.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"transformer-mt {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "VERB"),
        (["trian"], "trian"),
        (["probe", "--chekpoint", "best"], "--chekpoint"),
        (["probe", "--check", "best"], "--check"),
        (["probe", "--checkpoint"], "expected one argument"),
    ],
)
def test_a_wrong_command_line_is_refused(
    verb: Verb, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    """Pins B190 for flags: a misspelt or shortened flag is never ignored or guessed; usage errors give 2."""
    verb(failing(AssertionError("the verb must not run")))
    with pytest.raises(SystemExit) as stop:
        entry.main(arguments)
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err and err.count("\n") == 1


@pytest.mark.parametrize(("typed", "meant"), [("--chekpoint", "--checkpoint"), ("--hepl", "--help")])
def test_a_misspelt_flag_names_the_nearest(
    verb: Verb, capsys: pytest.CaptureFixture[str], typed: str, meant: str
) -> None:
    """Pins that a user is told what was meant, in one line."""
    verb(lambda args: 0)
    with pytest.raises(SystemExit):
        entry.main(["probe", typed, "best"])
    line = f"transformer-mt probe: error: unrecognized arguments: {typed}"
    err = capsys.readouterr().err
    assert err.startswith(line) and f"; did you mean {meant}?; see transformer-mt probe --help" in err
    assert err.count("\n") == 1


def test_flags_and_words_may_be_mixed(verb: Verb) -> None:
    """Pins that `train RECIPE --dry-run key=value` keeps its overrides: argparse alone refuses them."""
    seen: list[argparse.Namespace] = []

    def run(args: argparse.Namespace) -> int:
        seen.append(args)
        return 0

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("recipe")
        parser.add_argument("overrides", nargs="*")
        parser.add_argument("--checkpoint")

    verb(run)
    sys.modules["transformer_mt.cli.probe"].add_arguments = add_arguments  # type: ignore[attr-defined]
    assert entry.main(["probe", "a.yaml", "b=1", "--checkpoint", "best", "c=2"]) == 0
    assert (seen[0].recipe, seen[0].overrides, seen[0].checkpoint) == ("a.yaml", ["b=1", "c=2"], "best")


@pytest.mark.parametrize(
    ("closed", "body", "code", "message"),
    [
        ("<&-", "sys.stdin.buffer.readline()", 3, "stdin or stdout is closed"),
        (">&-", "print(1)", 3, "stdin or stdout is closed"),
        (">/dev/full", "print(1)", 3, "error: stdout: No space left on device"),
        (">/dev/full", f"{SHOW}('1')", 3, "error: stdout: No space left on device"),
        ("<&- >&-", "pass", 0, ""),
        ("2>&-", "print(1, file=sys.stderr)", 0, ""),
    ],
)
def test_a_closed_stream_is_an_error_only_where_it_is_used(
    closed: str, body: str, code: int, message: str
) -> None:
    """Pins B184 for streams: no traceback, not exit code 120, and no file of ours takes the free number."""
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, PROBE.format(body=body)],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUNBUFFERED": ""},
        check=False,
    )
    assert done.returncode == code
    assert done.stderr.count("\n") == (1 if message else 0) and message in done.stderr


def test_a_shell_script_may_close_its_stderr(tmp_path: Path) -> None:
    """Where that was, bash has the script itself, open for reading: what is said there is dropped."""
    script = tmp_path / "script"
    script.write_text(f'exec {sys.executable} -c "$1"\n', encoding="utf-8")
    body = PROBE.format(body="print(1, file=sys.stderr)")
    done = subprocess.run(["bash", "-c", 'exec bash "$0" "$1" 2>&-', script, body], check=False)
    assert done.returncode == 0


def test_a_pipe_that_does_not_wait_is_read_to_its_end() -> None:
    """Pins that "nothing yet", as a pipe of some parents says, is not the end of the text."""
    end, start = os.pipe()
    os.set_blocking(end, False)
    body = "print(len(sys.stdin.buffer.read1(9)), flush=True)\n    print(len(sys.stdin.buffer.read1(9)))"
    with subprocess.Popen(
        [sys.executable, "-c", PROBE.format(body=body)], stdin=end, stdout=subprocess.PIPE
    ) as process:
        os.close(end)
        os.write(start, b"a\n")
        assert process.stdout and process.stdout.readline() == b"2\n"
        time.sleep(0.5)
        os.write(start, b"bc\n")
        assert process.stdout.readline() == b"3\n"
        os.close(start)


def test_a_caller_keeps_its_ctrl_c(verb: Verb) -> None:
    """Pins that an interrupted call leaves no ignored signal to its caller and the processes of that."""

    def interrupt(args: argparse.Namespace) -> int:
        raise KeyboardInterrupt

    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    verb(interrupt)
    assert entry.main(["probe"]) == 130
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP])
def test_termination_unwinds(tmp_path: Path, number: signal.Signals) -> None:
    """Pins B186 for verbs without a state to save: SIGTERM gives 143 and removes half-written files."""
    script = PROBE.format(
        body="""
    from transformer_mt.text.lines import write_lines
    def lines():
        print(1, flush=True)
        import time
        time.sleep(60)
        yield "a"
    write_lines("out", lines())"""
    )
    # Where nohup started the tests, SIGHUP is ignored by all that they start.
    heeded = f"import signal\nsignal.signal({int(number)}, signal.SIG_DFL)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", heeded + script],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout and process.stdout.readline() == b"1\n"
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (143, b"transformer-mt: error: terminated\n")
    assert list(tmp_path.iterdir()) == []


def test_one_of_several_processes_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pins an abort at the interpreter's end, by which a training that was done had failed."""
    ended: list[int] = []
    monkeypatch.setattr("os._exit", ended.append)
    monkeypatch.setattr("sys.argv", ["transformer-mt", "prepare", "absent.yaml"])
    assert entry.main() == 2 and ended == []
    monkeypatch.setenv("WORLD_SIZE", "2")
    entry.main()
    assert ended == [2]
    assert entry.main(["prepare", "absent.yaml"]) == 2 and ended == [2], "who calls it lives on"
