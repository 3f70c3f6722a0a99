"""Counts tests from the events of `go test -json` and from JUnit files.

    tally.py suite FILE                       what one suite did; failures in full
    tally.py total [--failed=STEP…] FILE…     reasons of skips, then the count

A test that holds subtests is counted by them. A package that does not build, or
dies, counts as one failure. A step that failed without a failed test (a lint)
counts as one failure too, so that the count never reads better than the run.
Exits 1 on any failure, and where a file holds no test at all.
"""

import json
import pathlib
import re
import sys
import xml.etree.ElementTree as ET

LOCATION = re.compile(r"^\s+\S+\.go:\d+: (.*)$")


class Suite:
    def __init__(self, path):
        self.name = pathlib.Path(path).stem
        self.passed, self.failed = [], []
        self.skipped = []  # (test, reason)
        self.packages = []  # (status, package, seconds)
        self.output = {}  # test -> lines
        text = pathlib.Path(path).read_text(errors="replace")
        if str(path).endswith(".xml"):
            self.read_junit(text)
        else:
            self.read_go(text)

    @property
    def ran(self):
        return len(self.passed) + len(self.failed) + len(self.skipped)

    def read_go(self, text):
        status, output, packages, builds = {}, {}, {}, {}
        for line in text.splitlines():
            try:
                event = json.loads(line)
            except json.JSONDecodeError:
                continue
            package, test, action = event.get("Package", ""), event.get("Test", ""), event.get("Action")
            key = (package, test)
            if action in ("output", "build-output"):
                where = key if action == "output" else ("build", event.get("ImportPath", ""))
                output.setdefault(where, []).append(event.get("Output", ""))
            elif action in ("pass", "fail", "skip"):
                if test:
                    status[key] = action
                else:
                    packages[package] = (action, event.get("Elapsed", 0))
                    if event.get("FailedBuild"):
                        builds[package] = event["FailedBuild"]
            elif action == "run":
                status.setdefault(key, "fail")  # never ended: the package died in it
        parents = {(p, t.rsplit("/", 1)[0]) for p, t in status if "/" in t}
        broken = {(p, t.rsplit("/", 1)[0]) for (p, t), s in status.items() if "/" in t and s == "fail"}
        for key, state in status.items():
            name = f"{key[0]}.{key[1]}"
            if key in parents and not (state == "fail" and key not in broken):
                continue
            if state == "pass":
                self.passed.append(name)
            elif state == "skip":
                self.skipped.append((name, self.reason(output.get(key, []))))
            else:
                self.failed.append(name)
                self.output[name] = output.get(key, [])
        for package, (state, seconds) in packages.items():
            self.packages.append((state, package, seconds))
            if state == "fail" and not any(n.startswith(package + ".") for n in self.failed):
                self.failed.append(package)
                lines = output.get(("build", builds.get(package, "")), []) + output.get((package, ""), [])
                self.output[package] = lines

    @staticmethod
    def reason(lines):
        said = [m.group(1).strip() for m in map(LOCATION.match, lines) if m]
        return " ".join(said) or "no reason given"

    def read_junit(self, text):
        for case in ET.fromstring(text).iter("testcase"):
            name = f"{case.get('classname')}.{case.get('name')}"
            skip = case.find("skipped")
            bad = [e for e in case if e.tag in ("failure", "error")]
            if bad:
                self.failed.append(name)
                self.output[name] = [e.text or "" for e in bad]
            elif skip is not None:
                self.skipped.append((name, skip.get("message") or "no reason given"))
            else:
                self.passed.append(name)


def show(suite):
    for state, package, seconds in suite.packages:
        word = {"pass": "ok", "fail": "FAIL", "skip": "-"}[state]
        note = "no test files" if state == "skip" else f"{seconds:.1f}s"
        print(f"{word:<5}{package}  {note}")
    for name in suite.failed:
        print(f"\nFAILED {name}")
        print("".join(suite.output.get(name, [])).rstrip())
    print(f"{suite.name}: {len(suite.passed)} passed, {len(suite.failed)} failed, {len(suite.skipped)} skipped.")


def total(steps, suites):
    passed = failed = skipped = 0
    told = set()
    skips = {}  # (test, reason) -> suites: most suites skip the same
    for suite in suites:
        passed += len(suite.passed)
        failed += len(suite.failed)
        skipped += len(suite.skipped)
        for name, reason in suite.skipped:
            skips.setdefault((name, reason), []).append(suite.name)
        for name in suite.failed:
            print(f"failed in {suite.name}: {name}")
            told.add(suite.name)
        if not suite.ran:
            print(f"failed: {suite.name} ran no test")
            failed += 1
            told.add(suite.name)
    for (name, reason), where in skips.items():
        print(f"skipped in {', '.join(where)}: {name}: {reason}")
    for step in steps:
        if step not in told:
            print(f"failed: {step}")
            failed += 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed == 0


def main(argv):
    command, args = argv[0], argv[1:]
    if command == "suite":
        suite = Suite(args[0])
        show(suite)
        if not suite.ran:
            print(f"{suite.name} ran no test")
        return not suite.failed and suite.ran > 0
    steps = [a.removeprefix("--failed=") for a in args if a.startswith("--failed=")]
    suites = [Suite(a) for a in args if not a.startswith("--failed=")]
    return total(steps, suites)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:]) else 1)
