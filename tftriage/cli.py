"""The command line: arguments in, one function called, its exit status out. Textual is not imported for a verb."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from tftriage import __version__
from tftriage.language import system_language

Command = Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status (see README)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _streams()
    parser, verbs = _parser()
    if not arguments or (arguments[0] not in verbs and arguments[0] not in ("-h", "--help", "--version")):
        arguments.insert(0, "triage")  # no verb: the screen, with FILE or - pasted
    options = parser.parse_args(arguments)
    options.lang = options.lang or system_language()
    if options.no_color:
        os.environ["NO_COLOR"] = "1"
    options.run = _without_screen(options)
    from tftriage.headless import Stop, complain
    from tftriage.knowledge import KnowledgeError
    from tftriage.plain import one_line
    from tftriage.session import NoTarget

    try:
        return int(_load(options.run)(options))
    except Stop as stop:
        if str(stop):
            complain(str(stop))
        return stop.status
    except NoTarget as none:
        from tftriage.knowledge import load

        complain(load().say(f"target.{none.kind}", options.lang, detail=one_line(str(none))))
        return 4
    except KnowledgeError as error:
        complain(f"knowledge base: {error}")
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `tftriage … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0


def _streams() -> None:
    """A redirected stdout is GBK on a Chinese Windows and would raise on the first character it does not have."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _without_screen(options: argparse.Namespace) -> str:
    """What runs instead of the screen where there can be none, or where nobody wants one."""
    run: str = options.run
    plain = options.plain or os.environ.get("TERM") == "dumb"
    if run == "tui.app:monitor":
        return "monitoring:monitor" if plain or options.json or not sys.stdout.isatty() else run
    return run.replace("tui.app:", "plainwalk:").replace("tui.demos:", "plainwalk:") if plain else run


def _load(name: str) -> Command:
    """``module:function``, imported only when its verb is used (start-up time)."""
    from importlib import import_module

    module, function = name.split(":")
    command: Command = getattr(import_module(f"tftriage.{module}"), function)
    return command


def _parser() -> tuple[argparse.ArgumentParser, set[str]]:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--lang", choices=("en", "zh"), help="language (default: the system's)")
    common.add_argument("--ascii", action="store_true", help="ASCII only in frames and marks")
    common.add_argument("--no-color", action="store_true", help="no colours (NO_COLOR does the same)")
    common.add_argument("--json", action="store_true", help="one JSON document on standard output")
    common.add_argument("--plain", action="store_true", help="questions and answers line by line (as TERM=dumb does)")
    common.add_argument("--quiet", action="store_true", help="no progress on standard error")

    target = argparse.ArgumentParser(add_help=False)
    target.add_argument("--python", metavar="PATH", help="the interpreter under suspicion")
    target.add_argument("--module", default="tensorflow", metavar="NAME", help="the module that fails to import")
    target.add_argument("--kernel", metavar="NAME", help="the Jupyter kernel in which it fails")
    target.add_argument("--cwd", metavar="DIR", help="the folder in which it fails")
    target.add_argument("--fresh", action="store_true", help="look as a newly opened console would (Windows)")
    target.add_argument("--search", action="append", default=[], metavar="DIR", help="look for libraries here too")
    target.add_argument("--case", metavar="FILE", help="a recorded case instead of this machine")
    target.add_argument("--ssh", metavar="HOST", help="another machine, through the system's ssh")
    target.add_argument("--ssh-python", metavar="NAME", help="the Python that runs the collector there")

    walk = argparse.ArgumentParser(add_help=False)
    walk.add_argument("--error", metavar="FILE", help="the error text (- for standard input)")
    walk.add_argument("--symptom", metavar="ID", help="start from this symptom")
    walk.add_argument("--answer", action="append", default=[], metavar="NODE=ANSWER", help="answer a node yourself")

    screen = argparse.ArgumentParser(add_help=False)
    screen.add_argument("--full-redraw", action="store_true", help="send whole parts of the screen, not what changed")

    parser = argparse.ArgumentParser(
        prog="tftriage",
        description="Find out why TensorFlow does not see or use its GPU, and put it right. No verb: the screen.",
    )
    parser.add_argument("--version", action="version", version=f"tftriage {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")

    def verb(name: str, run: str, text: str, *parents: argparse.ArgumentParser) -> argparse.ArgumentParser:
        made = verbs.add_parser(name, help=text, description=text, parents=[common, *parents])
        made.set_defaults(run=run)
        return made

    triage = verb("triage", "tui.app:triage", "the screen, with the text of FILE or - pasted", target, screen)
    triage.add_argument("file", nargs="?", metavar="FILE")

    match = verb("match", "headless:match", "which symptoms a text shows")
    match.add_argument("file", nargs="?", metavar="FILE")

    diagnose = verb("diagnose", "headless:diagnose", "walk the tree without a person", target, walk)
    diagnose.add_argument("--save", metavar="FILE", help="write the case there")

    doctor = verb("doctor", "headless:doctor", "every probe, what is wrong first", target)
    doctor.add_argument("probe", nargs="*", metavar="PROBE", help="only these probes")
    doctor.add_argument("--list", action="store_true", help="list the probes")

    dlls = verb("dlls", "libraries:dlls", "the import chain of a .pyd, .dll or .so", target)
    dlls.add_argument("file", nargs="?", metavar="FILE", help="a file, or a library's name (default: TensorFlow's own)")
    dlls.add_argument("--with-path", action="append", default=[], metavar="DIR", help="as if DIR were first on PATH")
    dlls.add_argument(
        "--with-file", action="append", default=[], metavar="FILE[=PLACE]",
        help="as if FILE also lay at PLACE, a folder or a full name (default: beside the file looked at)",
    )  # fmt: skip
    dlls.add_argument(
        "--via", choices=("extension", "runtime", "ctypes"), help="how it is loaded, when its form does not tell"
    )

    monitor = verb("monitor", "tui.app:monitor", "GPU and CPU over time, and why the GPU idles", target)
    monitor.add_argument("--seconds", type=float, default=10.0, metavar="N", help="without a screen: how long (10)")

    fix = verbs.add_parser("fix", help="list, show or apply fixes", description="list, show or apply fixes")
    fixes = fix.add_subparsers(dest="fix_verb", metavar="list|show|apply", required=True)
    listing = fixes.add_parser("list", help="every fix, and what is never done", parents=[common])
    listing.add_argument("word", nargs="?", metavar="WORD", help="only what is about this")
    listing.set_defaults(run="fixing:fix_list")
    for name, run in (("show", "fixing:fix_show"), ("apply", "fixing:fix_apply")):
        made = fixes.add_parser(name, help=f"{name} one fix", parents=[common, target, walk])
        made.add_argument("id", metavar="ID")
        made.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a value for the plan")
        made.add_argument("--dry-run", action="store_true", help="only the preview")
        made.add_argument("--yes", action="store_true", help="yes, apply what the preview shows")
        made.set_defaults(run=run)

    undo = verb("undo", "fixing:undo", "take a change back (the last one, or entry N of the journal)")
    undo.add_argument("entry", nargs="?", metavar="N")
    undo.add_argument("--finish", action="store_true", help="carry an interrupted change to its end instead")
    undo.add_argument("--keep", action="store_true", help="keep what somebody else changed since, undo the rest")
    undo.add_argument("--force", action="store_true", help="restore even what was changed by somebody else since")
    verb("journal", "fixing:journal", "what was changed")

    collect = verb("collect", "headless:collect", "write a case of this machine", target, walk)
    collect.add_argument("-o", "--output", default="tftriage-case.json", metavar="FILE")
    collect.add_argument("--no-redact", action="store_true", help="keep names and hosts as they are")

    report = verb("report", "reporting:command", "a case as something to hand over, without names", target, walk)
    report.add_argument("file", nargs="?", metavar="CASE")
    report.add_argument("--format", choices=("md", "html", "svg", "json"), default="md")
    report.add_argument("-o", "--output", metavar="FILE", help="write it there (default: standard output)")
    report.add_argument("--no-redact", action="store_true", help="keep names and hosts as they are")

    collector = verb("collector", "casework:collector", "write a one-file collector for machines without tftriage")
    collector.add_argument("-o", "--output", default="collect.pyz", metavar="FILE")
    redacted = verb("redact", "casework:redact", "take names and secrets out of a case that was written without")
    redacted.add_argument("case", metavar="CASE")
    redacted.add_argument("-o", "--output", metavar="FILE", help="write it there (default: the same file)")
    redacted.add_argument("--name", action="append", default=[], metavar="NAME", help="a name to take out, too")
    compared = verb("diff", "diff:diff", "what differs between a machine that works and one that does not")
    compared.add_argument("good", metavar="GOOD", help="the case of the machine that works")
    compared.add_argument("bad", metavar="BAD", help="the case of the one that does not")
    told = verb("message", "message:tell", "what to tell the owner of a case, in their language, ready to send")
    told.add_argument("case", metavar="CASE")
    told.add_argument("--in", dest="message_lang", choices=("en", "zh"), help="the language of the message")
    room = verb("class", "classview:show_class", "many cases as one table, grouped by cause")
    room.add_argument("folder", metavar="DIR")
    room.add_argument("--csv", action="store_true", help="the table as CSV on standard output")
    room.add_argument("--html", metavar="FILE", help="one page that needs nothing else, to read or to print")
    room.add_argument("--messages", metavar="DIR", help="a message for every student, in their language, into DIR")
    room.add_argument("--against", metavar="GOOD", help="what differs from this case of a machine that works")
    opened = verb("open", "tui.app:open_case", "open a recorded case on the screen", screen)
    opened.add_argument("case", metavar="CASE")
    about_demo = "the screen on a recorded case: no GPU, no Windows, no TensorFlow needed"
    demo = verb("demo", "tui.demos:demo", about_demo, screen)
    demo.add_argument("name", nargs="?", metavar="NAME")
    demo.add_argument("--list", action="store_true", help="list the recorded cases")

    runs = verb("run", "fixing:run", "run CMD unchanged; triage its output when it fails")
    runs.add_argument("command", nargs=argparse.REMAINDER, metavar="-- CMD")

    kb = verbs.add_parser("kb", help="for authors of the knowledge base", description="for authors")
    kbs = kb.add_subparsers(dest="kb_verb", metavar="check|show|graph", required=True)
    folder = argparse.ArgumentParser(add_help=False)
    folder.add_argument("--folder", metavar="DIR", help="this knowledge/ instead of ours")
    check = kbs.add_parser("check", help="every hole in it", parents=[common, folder])
    check.set_defaults(run="headless:kb_check")
    shown = kbs.add_parser("show", help="what it says of an id; without one, every id", parents=[common, folder])
    shown.add_argument("id", nargs="?", metavar="ID", help="a symptom, tree, node, diagnosis, fix, myth or table")
    shown.set_defaults(run="kbshow:show")
    graph = kbs.add_parser("graph", help="the trees as a picture to draw", parents=[common, folder])
    graph.add_argument("tree", nargs="?", metavar="TREE", help="only this tree")
    graph.add_argument("--format", choices=("mermaid", "dot", "svg"), default="mermaid")
    graph.set_defaults(run="kbshow:graph")
    return parser, set(verbs.choices)


if __name__ == "__main__":
    sys.exit(main())
