"""The triage as a conversation: which symptom, question by question, the cause, and a fix by typed words."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from msgspec.structs import replace

from tftriage import choose, fixing, freetext, headless, mend, reporting, show
from tftriage.cases import RedactionError
from tftriage.facts import Facts
from tftriage.fixes.effects import StepResult
from tftriage.fixes.journal import Busy, Journal
from tftriage.fixes.plans import Plan, Refused
from tftriage.fixes.undo import Undone, recover, undo
from tftriage.lines import End, Lines
from tftriage.plain import one_line
from tftriage.probes.base import Evidence, Finding
from tftriage.session import Entered, Judged, NoTarget, Progress, Session
from tftriage.walk import Ask, WalkError

WORDS = ("apply", "undo", "finish", "report", "save", "back", "start", "quit", "help", "hand", "paste", "reproduce",
         "check", "python", "language")  # fmt: skip
AFTERWARDS = ("restart-kernel", "new-console")


class Again(Exception):
    """Back to the choice of a symptom."""


class Talk:
    """One conversation about one session. Every method that asks may raise ``End``, or ``Again`` to start over."""

    def __init__(self, session: Session, lines: Lines, options: Namespace) -> None:
        self.session = session
        self.lines = lines
        self.options = options
        self.lang: str = options.lang
        texts = session.knowledge.messages
        self.words = {texts[f"plain.word.{word}"][lang]: word for word in WORDS for lang in ("en", "zh")}
        self.words |= {"?": "help", "q": "quit", "b": "back"}

    # --- speaking ----------------------------------------------------------------------------------------------

    def text(self, key: str, **params: object) -> str:
        """One of the interface's sentences."""
        return self.session.knowledge.say(key, self.lang, **params)

    def say(self, key: str, **params: object) -> None:
        """Say one of them."""
        self.lines.say(self.text(key, **params))

    def evidence(self, finding: Finding | None) -> None:
        """What was seen, the level in words."""
        for line in finding.evidence if finding else ():
            said = show.sentence(self.session.knowledge, line, self.lang)
            self.lines.say("   " + self.text(f"plain.level.{line.level}", text=said))

    def hear(self, prompt: str, deliberate: bool = False) -> tuple[str, str]:
        """A line, and the word it means (``""`` for none). Words that work everywhere are done here."""
        while True:
            line = self.lines.ask(prompt, deliberate)
            said = line.lower().split()
            word = self.words.get(said[0], "") if said else ""
            if word == "quit":
                raise End
            if word == "help":
                self.say("plain.help")
            elif word == "language":
                self.lang = self.options.lang = "en" if self.lang == "zh" else "zh"
                self.say("plain.help")
            elif word == "start":
                raise Again
            else:
                return line, word

    # --- the symptom -------------------------------------------------------------------------------------------

    def hold(self) -> None:
        """The whole conversation; ends with ``End``."""
        self.say("plain.hello")
        python = one_line(str(self.session.target.python or "?"))
        if not self.session.source.live:
            self.say("plain.recorded", python=python)
        else:
            self.cut_off()
        walked = self.session.walk is not None
        while True:
            try:
                if walked:
                    walked = False
                    self.retell()
                    self.go_on()
                if not self.session.text and self.session.source.live:
                    self.take_text()
                self.go(self.choose())
            except Again:
                self.lines.say()
            except NoTarget as none:
                self.say(f"target.{none.kind}", detail=one_line(str(none), 200))
                self.session.retarget(replace(self.session.target, python=None))

    def take_text(self) -> None:
        """A pasted text, or none."""
        self.say("plain.paste")
        text = self.lines.paste()
        self.session.paste(text)
        if text:
            self.say("plain.read", lines=text.count("\n"))

    def choose(self) -> str:
        """Which symptom: those recognised, the complaints, or what words find."""
        kb, session = self.session.knowledge, self.session
        matched = session.matched
        if matched is not None and matched.verdict != "fault":
            self.say(f"verdict.{matched.verdict}")
        likely = [found.id for found in matched.matches[:4]] if matched else []
        complaints = sorted((s for s in kb.symptoms if s.complaint and s.id not in likely), key=lambda s: s.order)
        self.list(likely, "start.looks-like", 1)
        self.list([s.id for s in complaints], "start.or-choose" if likely else "start.choose", 1 + len(likely))
        offered = likely + [s.id for s in complaints]
        while True:
            line, word = self.hear(self.text("plain.which"))
            if word:
                self.at_start(word)
            elif not line or line.isdigit():
                number = int(line or 1)
                if 1 <= number <= len(offered):
                    return offered[number - 1]
                self.say("plain.no-such-number", number=number)
            else:
                found = list(freetext.search(line, kb.symptoms))
                offered = found or offered
                self.say("plain.found" if found else "plain.nothing-found", query=one_line(line, 60))
                self.list(found, "", 1)

    def list(self, ids: list[str], heading: str, first: int) -> None:
        """Numbered titles below a heading."""
        if ids and heading:
            self.say(heading)
        for number, symptom in enumerate(ids, first):
            self.lines.say(f"{number:3}. {self.session.knowledge.symptom(symptom).title[self.lang]}")

    def at_start(self, word: str) -> None:
        """A word instead of a symptom."""
        session = self.session
        if word == "paste":
            self.take_text()
            raise Again
        if word not in ("reproduce", "check", "python"):
            self.say("plain.not-understood", line=word)
        elif not session.source.live and word != "check":
            self.say("error.recorded")
        elif word == "python":
            self.choose_python()
        elif word == "reproduce":
            self.with_target()
            self.say("start.reproducing")
            if session.reproduce() is None:
                self.say("diagnose.nothing-wrong")
            raise Again
        else:
            self.with_target()
            self.say("doctor.wait")
            headless.check_everything(session, Namespace(lang=self.lang, json=False, probe=[], quiet=True))

    # --- the target --------------------------------------------------------------------------------------------

    def with_target(self) -> None:
        """Make sure that it is known which Python it is about."""
        session = self.session
        if not session.source.live:
            return
        if session.target.python is None:
            session.observe(("pythons.list", "env.process", "system.os"))
            python, _ = choose.suggest(session.facts, session.text)
            if python is None:
                self.choose_python()
            else:
                session.retarget(replace(session.target, python=python))
        self.say("plain.target", python=one_line(str(session.target.python)))

    def choose_python(self) -> None:
        """A number of those found, or a path."""
        session = self.session
        session.observe(("pythons.list",))
        found = choose.candidates(session.facts)
        for number, python in enumerate(found, 1):
            tensorflow = python.get("tensorflow") or self.text("target.no-tensorflow")
            self.lines.say(f"{number:3}. {python.get('version') or '?'}  {tensorflow}  {python['path']}")
        while True:
            line, word = self.hear(self.text("plain.pythons"))
            if word == "back":
                raise Again
            number = int(line) if line.isdigit() else 0
            if 1 <= number <= len(found):
                path: str = found[number - 1]["path"]
                break
            if line and Path(line).is_file():
                path = line
                break
            self.say("target.no-such", path=one_line(line, 200))
        keep = ("pythons.list", "env.process", "system.os", "paste.text")
        session.facts = Facts(session.facts[name] for name in keep if name in session.facts)
        session.retarget(replace(session.target, python=path))

    # --- the walk ----------------------------------------------------------------------------------------------

    def go(self, symptom: str) -> None:
        """Walk from a symptom to its end, and on from there."""
        self.with_target()
        self.lines.say(self.session.knowledge.symptom(symptom).title[self.lang])
        self.session.begin(symptom)
        self.go_on()

    def go_on(self) -> None:
        """Question after question; at the end the diagnosis, until the person starts over."""
        while True:
            end = self.session.advance(self.heard)
            if isinstance(end, Ask):
                self.question(end)
            else:
                self.diagnosis()

    @property
    def number(self) -> int:
        """Of the present question."""
        return 1 + (len(self.session.walk.steps) if self.session.walk else 0)

    def heard(self, progress: Progress) -> None:
        """A question is put to the machine, or the machine has answered."""
        if isinstance(progress, Entered):
            ask = self.session.knowledge.nodes[progress.node].ask[self.lang]
            self.say("plain.looking", n=self.number, ask=ask)
        elif isinstance(progress, Judged):
            self.answered(progress.node, progress.finding.answer, progress.finding)

    def answered(self, node: str, answer: str, finding: Finding | None) -> None:
        """The answer in words, with what was seen."""
        label = self.session.knowledge.nodes[node].choices.get(answer)
        if answer == "unknown" and label is None:
            self.say("plain.no-answer", reason=one_line(finding.reason if finding else "", 200))
        else:
            self.say("plain.answer", answer=label[self.lang] if label else answer)
        self.evidence(finding)

    def retell(self) -> None:
        """What a recorded walk asked and saw."""
        walk = self.session.walk
        self.lines.say(self.session.knowledge.symptom(walk.symptom).title[self.lang] if walk else "")
        for number, step in enumerate(walk.steps if walk else (), 1):
            self.lines.say(f"{number}. {self.session.knowledge.nodes[step.node].ask[self.lang]}")
            self.answered(step.node, step.answer, step.finding)

    def question(self, asked: Ask) -> None:
        """One question for the person."""
        node = self.session.knowledge.nodes[asked.node]
        choices = [choice for choice in asked.choices if choice in node.choices]
        self.say("plain.ask", n=self.number, ask=node.ask[self.lang])
        self.lines.say(node.why[self.lang].strip())
        for number, choice in enumerate(choices, 1):
            self.lines.say(f"{number:3}. {node.choices[choice][self.lang]}")
        while True:
            line, word = self.hear(self.text("plain.give"))
            if word == "hand":
                self.lines.say(node.by_hand[self.lang].strip())
            elif word == "back":
                return self.back()
            elif word in ("report", "save"):
                self.write(word, line)
            elif line.isdigit() and 1 <= int(line) <= len(choices):
                return self.session.answer(asked.node, choices[int(line) - 1])
            else:
                self.say("plain.not-understood", line=one_line(line, 60))

    def back(self) -> None:
        """One question back, or to the choice of a symptom."""
        try:
            self.session.back()
        except WalkError:
            raise Again from None

    # --- the diagnosis -----------------------------------------------------------------------------------------

    def diagnosis(self) -> None:
        """The cause, what to do, and the fixes; returns when the walk has to go on."""
        kb, session, found = self.session.knowledge, self.session, self.session.diagnosis
        if found is None:
            return None
        self.lines.say()
        self.say("plain.cause", title=found.title[self.lang])
        self.lines.say("\n".join(show.diagnosis_text(session, replace(found, fixes=()), self.lang)[2:]))
        offers = mend.offers(session)
        usable = [offer.fix for offer in offers if offer.refused is None]
        if usable:
            self.say("plain.fixes")
        for number, offer in enumerate(offers, 1):
            title = kb.fixes[offer.fix].title[self.lang]
            if offer.refused is None:
                self.lines.say(f"{number:3}. {title} ({self.text('risk.' + kb.fixes[offer.fix].risk)})")
            else:
                reason = show.sentence(kb, Evidence(offer.refused), self.lang)
                self.say("plain.not-here", title=title, reason=reason)
        before, numbers = session.walk, self.text("plain.next-number") if usable else ""
        while session.walk is before:
            line, word = self.hear(self.text("plain.next", numbers=numbers))
            if word == "back":
                return self.back()
            if word in ("report", "save"):
                self.write(word, line)
            elif line.isdigit() and 1 <= int(line) <= len(usable):
                self.fix(usable[int(line) - 1])
            else:
                self.say("plain.not-understood", line=one_line(line, 60))
        return None

    def write(self, word: str, line: str) -> None:
        """A report or a case, into the current folder."""
        try:
            if word == "save":
                path = headless.new_file("", "json")
                headless.save_case(self.session, path, self.lang)
            else:
                path = reporting.write(self.session, self.lang, (line.lower().split()[1:] or ["md"])[0])
        except (headless.Stop, RedactionError, OSError) as error:
            self.lines.say(str(error))
        else:
            self.say("save.done" if word == "save" else "report.written", path=path.absolute())

    # --- fixes -------------------------------------------------------------------------------------------------

    def fix(self, name: str) -> None:
        """Preview; on the typed word apply and verify."""
        kb, session = self.session.knowledge, self.session
        try:
            plan = mend.plan(session, name)
        except Refused as refused:
            return self.lines.say(fixing.refusal(kb, refused, self.lang))
        self.lines.say("\n".join(fixing.preview_lines(kb, plan, session, self.lang)))
        if not session.source.live:
            return self.say("fix.recorded")
        _, word = self.hear(self.text("plain.apply"), deliberate=True)
        return self.apply(plan) if word == "apply" else self.say("plain.unchanged")

    def apply(self, plan: Plan) -> None:
        """Do it, prove it, offer to take it back."""
        kb, session = self.session.knowledge, self.session
        self.say("fix.now-applying")
        try:
            applied = mend.carry_out(session, plan, Journal(), self.told)
        except (Refused, Busy) as refused:
            return self.lines.say(show.sentence(kb, refused.evidence, self.lang))
        if not applied.ok:
            error = show.sentence(kb, applied.error, self.lang) if applied.error else ""
            return self.say("fix.failed", error=error)
        self.say("fix.now-verifying")
        verified = mend.verify(session, plan)
        self.say(f"verified.{verified.result}")
        self.evidence(verified.finding)
        for need in plan.needs if verified.result != "not-cured" else ():
            if need in AFTERWARDS:
                self.say("fix.still", need=self.text(f"needs.{need}"))
        if applied.entry_id is not None and plan.undoable:
            _, word = self.hear(self.text("plain.undo"), deliberate=True)
            if word == "undo":
                self.ended(undo(Journal(), applied.entry_id), applied.entry_id)
                session.close()
                session.forget()
                raise Again
        if verified.result == "cured" and verified.asks is None:
            session.paste("")
            raise Again
        return None

    def told(self, result: StepResult) -> None:
        """One step is done."""
        sentence = show.sentence(self.session.knowledge, result.detail, self.lang)
        self.lines.say("   " + self.text("plain.level.ok" if result.ok else "plain.level.bad", text=sentence))

    def ended(self, undone: Undone, entry: str, good: str = "undo.done") -> None:
        """What became of taking back, or of finishing."""
        if undone.error is not None:
            self.lines.say(show.sentence(self.session.knowledge, undone.error, self.lang))
        else:
            self.say(good if undone.ok else "undo.conflict", entry=entry)

    def cut_off(self) -> None:
        """What a crash left of a fix: take it back, finish it, or leave it for later."""
        try:
            entries = Journal().unfinished()[::-1]
        except OSError:
            return
        for entry in entries:
            words = self.session.knowledge.fixes.get(entry.fix)
            self.lines.say(f"{words.title[self.lang] if words else entry.fix} ({entry.at[:16]})")
            _, word = self.hear(self.text("plain.cut-off"), deliberate=True)
            if word in ("undo", "finish"):
                done = recover(Journal(), entry.id, "finish" if word == "finish" else "take-back").get(entry.id)
                if done is not None:
                    self.ended(done, entry.id, "undo.finished" if word == "finish" else "undo.done")
