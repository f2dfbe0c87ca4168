"""Try a place from every process: read the data, write and see each other's marks."""

from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

CLIENT = "the client"


def try_place(place: Any, path: str, written: bool) -> dict[str, Any]:
    """Who cannot read it (data), cannot write there, sees other data, or does not see what others wrote."""
    from dkl.sources.shown import refuse_secret, shown
    from dkl.store import probe
    from dkl.store.folder import absolute

    refuse_secret("the data set" if not written else "--checkpoint", path)
    there = absolute(path)

    def ask(function: Any, *args: Any, each: Any = None) -> dict[str, Any]:
        """The answers of the workers, and of this process, which opens the data and writes the journal."""
        answers = place.ask(function, *args, each=None if each is None else each[1:])
        own = function(*args, *([] if each is None else each[:1]))
        return {CLIENT: own, **answers} if place.client is not None else {"": own}

    who = [CLIENT, *place.able] if place.client is not None else [""]
    seen = {} if written else ask(probe.look, there)
    unreadable = {one: fault for one, answer in seen.items() if (fault := _fault(answer))}
    digests = {one: answer.digest for one, answer in seen.items() if one not in unreadable}
    usual = Counter(digests.values()).most_common(1)[0][0] if digests else ""
    marks = [uuid.uuid4().hex[:12] for _ in who]
    try:
        left = ask(probe.leave, there, each=marks)
        unwritable = {one: fault for one, fault in left.items() if fault}
        visible = [mark for one, mark in zip(who, marks, strict=True) if one not in unwritable]
        missing = ask(probe.unseen, there, visible) if visible and written else {}
    finally:
        ask(probe.sweep, there, marks)
    return {
        "path": shown(path),
        "is_written": written,
        "unreadable": unreadable,
        "differs": [one for one, digest in digests.items() if digest != usual],
        "unwritable": unwritable,
        "unseen": {one: _count(some, visible) for one, some in missing.items() if some and one not in unwritable},
    }


def _fault(answer: Any) -> str:
    return answer if isinstance(answer, str) else str(answer.fault)


def _count(missing: Any, marks: list[str]) -> int:
    """Marks that were not seen; all of them by one that did not answer."""
    return len(missing) if isinstance(missing, list) else len(marks)
