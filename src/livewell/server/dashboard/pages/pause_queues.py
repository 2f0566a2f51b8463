"""Pause or resume all queues whose names begin so: the question, and the act.

/work ──"Pause all…"──▶ /work/pause: counted, the number is typed ──POST──▶ /work, which says what was done
                           └──other queues match by now──▶ nothing was done, and the question again
"""

from __future__ import annotations

from livewell.errors import InvalidOption
from livewell.server.dashboard.pages.act_query import address
from livewell.server.dashboard.pages.bulk_acts import bare
from livewell.server.dashboard.pages.queues import acting, admin
from livewell.server.dashboard.visit import Done, Elsewhere, Loaded, Panel, Visit, loaded
from livewell.words import number

_ACTS = ("pause", "resume")
_NAME_CHARS_MAX = 200
_QUEUES_MAX = 10_000  # of one act, see pause_queues.sql


async def panels(visit: Visit) -> list[Panel] | Elsewhere:
    """How many match, and whether they are meant."""
    act = visit.asked("act", among=_ACTS)
    if act is None:
        return Elsewhere("/work")
    name = visit.asked("name") or ""

    async def load() -> Loaded:
        n, paused = await admin(visit).count_queues(name)
        return loaded(n=n, paused=paused, name=name, is_pause=act == "pause", most=_QUEUES_MAX, is_empty=not n)

    title = f"{act.capitalize()} all queues" + (f" that begin with {name}" if name else "")
    nothing = f"No queue's name begins with {name}." if name else "No queue is declared yet."
    return [Panel("question", title, "pause_queues.html", load, f"{nothing} There is nothing to do.")]


async def pause(visit: Visit) -> Done:
    """Do it, if the number that was typed is the one that was counted, and is so still."""
    act, name = visit.form.get("act", ""), visit.form.get("name", "")[:_NAME_CHARS_MAX]
    shown, typed = visit.form.get("count", ""), visit.form.get("typed", "")
    if act not in _ACTS or "\x00" in name or not (shown.isascii() and shown.isdigit() and len(shown) < 10):
        raise InvalidOption("the form is not complete; begin again from the list of queues")
    again = address("/work/pause", {"act": act, "name": name})
    if bare(typed) != shown:
        wrong = typed.strip()[:20] or "nothing"
        return Done(f"Nothing was done: you typed {wrong}, and the number is {number(int(shown))}.", again)
    n, changed = await acting(visit).pause_all(name, paused=act == "pause", confirmed=int(shown))
    if changed is None:
        meant = f"you confirmed {number(int(shown))}"
        return Done(f"{number(n)} match by now, and {meant}: nothing was done. Count again.", again)
    words = "paused: what runs may end, nothing more is begun" if act == "pause" else "resumed"
    same = f" {number(n - changed)} were so already." if changed < n else ""
    noun = "queue is" if changed == 1 else "queues are"
    return Done(f"{number(changed)} {noun} {words}.{same}", address("/work", {"name": name} if name else {}))
