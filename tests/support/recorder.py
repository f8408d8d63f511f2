# SPDX-License-Identifier: Apache-2.0
"""A system whose steps are noted instead of taken: for tests of the order of a confined child's life."""


class Recorder:
    """A system whose steps are noted; one of them may fail, and parts of the sandbox may be missing."""

    def __init__(self, *, was_root=True, fails=None, landlock=True, seccomp=True):
        self.was_root = was_root
        self.steps = []
        self.arguments = {}
        self._fails, self._landlock, self._seccomp = fails, landlock, seccomp

    def _note(self, name, *arguments):
        self.steps.append(name)
        self.arguments[name] = arguments
        if name == self._fails:
            raise OSError(1, "no")

    def detach(self):
        self._note("detach")

    def descriptors(self, answer, life):
        self._note("descriptors", answer, life)

    def limits(self, wanted):
        self._note("limits", wanted)

    def identity(self, uid, gid, groups):
        self._note("identity", uid, gid, groups)

    def undebuggable(self):
        self._note("undebuggable")

    def no_new_privileges(self):
        self._note("no_new_privileges")

    def follow(self, supervisor):
        self._note("follow", supervisor)

    def landlock(self, _home):
        self._note("landlock")
        return self._landlock

    def seccomp(self):
        self._note("seccomp")
        return self._seccomp

    def answer(self, data):
        self._note("answer", data)
