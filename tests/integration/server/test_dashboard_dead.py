"""Dead letters and acts on many, by page and by HTTP: what is said, done and written down."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest

from livewell.server.dashboard import form
from livewell.server.dashboard.rendering import editable
from tests.support.http import Web
from tests.support.variants import variant

SECRET = "a" * 32
HOSTILE = "<script>alert(1)</script>\u202e"
LETTERS = """
INSERT INTO livewell.dead_job
    (id, queue, kind, reason, attempt, max_attempts, lost, lane, priority, created_at, died_at, payload, error,
     traceback)
SELECT 100 + n, CASE WHEN n <= 3 THEN 'mail' ELSE 'other' END, 'welcome', CASE WHEN n = 1 THEN 'lost' ELSE 'attempts' END,
    5, 5, 0, 1, 0, now() - interval '1 day', now() - n * interval '1 hour',
    '{"price": 0.10000000000000000001, "id": 9223372036854775807}', %s, 'Traceback: ' || n
FROM generate_series(1, 5) n
"""


def sent(**fields: str) -> dict[str, Any]:
    return {"data": {"token": form.token(SECRET), **fields}, "headers": {"Cookie": f"{form.TOKEN_COOKIE}={SECRET}"}}


@pytest.fixture
def dead(web: Web) -> Web:
    """Five letters: three of queue mail, two of another."""
    web.rows("INSERT INTO livewell.queue (name, created_at) VALUES ('mail', now()), ('other', now())")
    web.rows(LETTERS, f"boom {HOSTILE}")
    return web


def operator(web: Web) -> httpx2.AsyncClient:
    return web.as_key("operate", "view")


def audit(web: Web) -> list[tuple[Any, ...]]:
    return web.rows("SELECT action, subject, answer FROM livewell.audit ORDER BY id")


async def said(client: httpx2.AsyncClient, answer: httpx2.Response) -> str:
    """What the page after an act says."""
    assert answer.status_code == 303, answer.text
    cookie = answer.headers["set-cookie"].partition(";")[0]
    page = await client.get(answer.headers["location"], headers={"Cookie": cookie})
    return re.sub(r"\s+", " ", page.text)


async def question(client: httpx2.AsyncClient, **fields: str) -> tuple[str, dict[str, str]]:
    """The page that asks, and the fields of its form."""
    led = await client.get("/acts/new", params=fields)
    assert led.status_code == 303, led.text
    page = await client.get(led.headers["location"])
    assert page.status_code == 200, page.text
    inside = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text))
    inside.pop("token", None)
    return page.text, inside


def worked(web: Web) -> None:
    """A worker does what there is to do."""
    while web.rows("SELECT * FROM livewell.step_bulk_act(2)"):
        pass


async def test_nothing_is_said_in_words(web: Web) -> None:
    """Not as a failure, and not as zero."""
    assert (await operator(web).get("/dead")).text.count("Nothing has failed for good.") == 2


async def test_letters_are_grouped_filtered_and_shown_as_text(dead: Web) -> None:
    """By queue, task and reason, with counts; the URL holds the filter."""
    client = operator(dead)
    page = (await client.get("/dead")).text
    assert 'data-state="failed"' not in page
    assert "<script>alert" not in page
    assert "\u202e" not in page
    assert page.index(">101<") < page.index(">105<"), "the newest first"
    mail = (await client.get("/dead?queue=mail&reason=attempts")).text
    assert ">102<" in mail
    assert ">101<" not in mail
    assert ">104<" not in mail
    recent = (await client.get("/dead?since=150m")).text
    assert ">102<" in recent
    assert ">103<" not in recent
    assert "No dead letter matches." in (await client.get("/dead?task=nothing")).text
    wrong = await client.get("/dead?since=yesterday")
    assert wrong.status_code == 400
    assert "write an age such as" in wrong.text


async def test_the_list_goes_on_where_a_page_ended(dead: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """By time and id, with the filter."""
    monkeypatch.setattr("livewell.server.dashboard.pages.dead.PAGE_ROWS", 2)
    client, address, seen = operator(dead), "/dead?task=welcome", []
    for _ in range(4):
        page = (await client.get(address)).text
        seen += re.findall(r'href="/dead/(\d+)"', page)
        more = re.search(r'href="(\?[^"]+)" rel="next"', page)
        if more is None:
            break
        address = "/dead" + more[1].replace("&amp;", "&")
        assert "task=welcome" in address
    assert seen == ["101", "102", "103", "104", "105"]


async def test_a_letter_shows_all_digits_and_is_edited_exactly(dead: Web) -> None:
    """Before and after are in the audit; the task stays."""
    client = operator(dead)
    page = (await client.get("/dead/101")).text
    assert "0.10000000000000000001" in page
    assert "9223372036854775807" in page
    assert "Traceback: 1" in page
    was = re.search(r'name="was" value="(\w+)"', page)
    assert was is not None
    new = '{"price": 0.20000000000000000002}'
    done = await client.post("/dead/101/edit", **sent(was=was[1], payload=new))
    assert "has a new payload" in await said(client, done)
    assert dead.rows("SELECT payload::text, kind FROM livewell.dead_job WHERE id = 101") == [(new, "welcome")]
    assert audit(dead) == [("dead.edit", "job 101", "edited")]
    [(before, after, n)] = dead.rows("SELECT before::text, after::text, n FROM livewell.audit")
    assert "0.10000000000000000001" in before
    assert after == new
    assert n == 1


@pytest.mark.parametrize("payload", ["{", "[1]", '{"a": NaN}', '{"a": "\\u0000"}', '{"a": "\\ud800"}', ""])
async def test_a_payload_that_cannot_be_is_refused(dead: Web, payload: str) -> None:
    """And nothing is changed or written down."""
    client = operator(dead)
    was = re.search(r'name="was" value="(\w+)"', (await client.get("/dead/101")).text)
    assert was is not None
    answer = await client.post("/dead/101/edit", **sent(was=was[1], payload=payload))
    assert answer.status_code == 400
    assert "Nothing was done." in answer.text
    assert audit(dead) == []


async def test_stale_forms_say_so(dead: Web) -> None:
    """The letter is gone, or somebody else has changed it."""
    client = operator(dead)
    changed = await client.post("/dead/101/edit", **sent(was="0" * 32, payload="{}"))
    assert changed.status_code == 400
    assert "somebody else changed" in changed.text
    dead.rows("DELETE FROM livewell.dead_job WHERE id = 101")
    for act in ("redrive", "discard"):
        answer = await client.post(f"/dead/101/{act}", **sent())
        assert answer.status_code == 404
        assert "somebody has redriven or discarded it" in answer.text
    assert (await client.post("/dead/101/edit", **sent(was="x", payload="{}"))).status_code == 404
    assert (await client.get("/dead/101")).status_code == 404


async def test_one_letter_is_redriven_and_one_discarded(dead: Web) -> None:
    """Both are written down; the page of a redriven one is that of the job."""
    client = operator(dead)
    done = await client.post("/dead/101/redrive", **sent(query="queue=mail"))
    assert done.headers["location"] == "/dead?queue=mail"
    assert "Dead letter 101 is redriven" in await said(client, done)
    assert (await client.get("/dead/101")).headers["location"] == "/work/jobs/101"
    assert "Dead letter 102 is discarded." in await said(client, await client.post("/dead/102/discard", **sent()))
    assert dead.rows("SELECT action, subject, before, after, n FROM livewell.audit ORDER BY id") == [
        ("dead.redrive", "job 101", {"job 101": "mail welcome, lost"}, {"job 101": "ready"}, 1),
        ("dead.discard", "job 102", {"job 102": "mail welcome, attempts"}, None, 1),
    ]


async def test_the_audit_names_the_first_of_many_letters(dead: Web) -> None:
    """What stayed is not said to be ready."""
    client = operator(dead)
    dead.rows("UPDATE livewell.dead_job SET unique_key = 'k' WHERE id = 101")
    dead.rows(
        "INSERT INTO livewell.job (id, queue, kind, payload, state, rank, max_attempts, run_at, created_at, unique_key) "
        "VALUES (64, 'mail', 'welcome', '{}', 'ready', 0, 5, now(), now(), 'k')"
    )
    last = "SELECT before, after, n FROM livewell.audit ORDER BY id DESC LIMIT 1"
    await client.post("/v1/dead/redrive", json={"ids": [101]})
    assert dead.rows(last) == [({"job 101": "mail welcome, lost"}, {"job 101": "mail welcome, lost"}, 0)]
    await client.post("/v1/dead/redrive", json={"ids": [101, 102]})
    assert [(len(before), after, n) for before, after, n in dead.rows(last)] == [(2, None, 1)]
    await client.post("/v1/dead/redrive", json={"queue": "other"})
    assert dead.rows(last) == [(None, None, 2)]


async def test_all_that_match_are_redriven_after_the_number_was_typed(dead: Web) -> None:
    """Counted, confirmed, done by a worker, followed, written down with counts."""
    client = operator(dead)
    page, fields = await question(client, action="redrive", queue="mail")
    assert "Redrive <strong>3</strong> dead letters?" in page
    wrong = await client.post("/acts", **sent(**fields, typed="4"))
    assert "Nothing was done: you typed 4, and the number is 3." in await said(client, wrong)
    assert dead.rows("SELECT count(*) FROM livewell.bulk_act") == [(0,)]

    begun = await client.post("/acts", **sent(**fields, typed=" 3 "))
    assert "has begun" in await said(client, begun)
    again = await client.post("/acts", **sent(**fields, typed="3"))
    assert again.headers["location"] == begun.headers["location"]
    assert "asked for already" in await said(client, again)
    worked(dead)

    shown = (await client.get(begun.headers["location"])).text
    assert "done" in shown
    assert dead.rows("SELECT done, skipped, state FROM livewell.bulk_act") == [(3, 0, "done")]
    assert begun.headers["location"] in (await client.get("/acts")).text
    assert [line[0] for line in audit(dead)] == ["acts.begin", "acts.end"]
    assert audit(dead)[-1][2] == "done: 3 done, 0 skipped"


async def test_more_than_was_confirmed_is_not_touched(dead: Web) -> None:
    """A form that is sent for more than it said does nothing."""
    client = operator(dead)
    _, fields = await question(client, action="discard", queue="mail")
    answer = await client.post("/acts", **sent(**{**fields, "count": "1"}, typed="1"))
    assert answer.status_code == 400
    assert "3 match by now" in answer.text
    assert audit(dead) == []


async def test_the_second_who_asks_is_told_what_the_first_act_leaves_out(dead: Web) -> None:
    """Its count and its instant; no other act is begun."""
    client = operator(dead)
    _, first = await question(client, action="discard", queue="mail")
    _, second = await question(client, action="discard", queue="mail")
    begun = await client.post("/acts", **sent(**first, typed="3"))
    words = await said(client, await client.post("/acts", **sent(**second, typed="3")))
    assert "is doing the same already, and no other was begun" in words
    assert "when 3 matched; it does not touch what was made or died after" in words
    assert dead.rows("SELECT '/acts/' || id FROM livewell.bulk_act") == [(begun.headers["location"],)]


async def test_a_number_that_nobody_knows_is_confirmed_in_words(dead: Web, livewell_dsn: str) -> None:
    """Never with 0, which is how many of those that were looked at match.

    Seen failing: the form asked for a 0, and discarded what it had not counted.
    """
    client = operator(dead)
    few = ("c_look_most CONSTANT integer := 200000", "c_look_most CONSTANT integer := 2")
    with variant(livewell_dsn, "count_matching", few, ("v_before, 10000,", "v_before, 2,")):
        page, fields = await question(client, action="discard", reason="attempts", until="210min")
        assert fields["count"] == "all of them"
        assert "nobody looked behind those" in page
        for typed in ("0", "", "all"):
            answer = await said(client, await client.post("/acts", **sent(**fields, typed=typed)))
            assert "and the words are" in answer
        forged = await client.post("/acts", **sent(**{**fields, "count": "0"}, typed="0"))
        assert forged.status_code == 400
        assert "confirms nothing: nothing was done" in forged.text
        assert dead.rows("SELECT count(*) FROM livewell.bulk_act") == [(0,)]
        begun = await client.post("/acts", **sent(**fields, typed=" All of them"))
    here = begun.headers["location"]
    assert "nobody knows how many match" in (await client.get(here)).text
    worked(dead)
    assert dead.rows("SELECT how, done FROM livewell.bulk_act") == [("looked", 2)]


async def test_an_act_is_cancelled(dead: Web) -> None:
    """What is done stays done; a second cancel says that it had ended."""
    client = operator(dead)
    _, fields = await question(client, action="discard")
    begun = await client.post("/acts", **sent(**fields, typed="5"))
    here = begun.headers["location"]
    dead.rows("SELECT * FROM livewell.step_bulk_act(2)")
    assert "is cancelled" in await said(client, await client.post(f"{here}/cancel", **sent()))
    assert "had ended already" in await said(client, await client.post(f"{here}/cancel", **sent()))
    assert dead.rows("SELECT count(*) FROM livewell.dead_job") == [(3,)]
    assert (await client.get("/acts/999999")).status_code == 404
    assert (await client.post("/acts/999999/cancel", **sent())).status_code == 404


async def test_relative_times_become_instants_before_they_are_confirmed(dead: Web) -> None:
    """Twelve hours ago means the same when the form is sent."""
    led = await operator(dead).get("/acts/new", params={"action": "redrive", "since": "150m"})
    query = dict(parse_qsl(urlsplit(led.headers["location"]).query))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT.*\+00:00", query["since"])


async def test_the_page_that_asks_refuses_nonsense(dead: Web) -> None:
    """An action that is none, a filter that the action does not have, a form with holes."""
    client = operator(dead)
    assert (await client.get("/acts/new?action=explode")).status_code == 400
    page, _ = await question(client, action="redrive", state="ready")
    assert 'data-state="failed"' in page
    assert (await client.post("/acts", **sent(action="redrive", typed="1"))).status_code == 400
    empty, _ = await question(client, action="redrive", queue="nothing")
    assert "there is nothing to do" in empty


async def test_dead_letters_by_http(dead: Web) -> None:
    """Edit with every digit, discard, and acts on many."""
    client = operator(dead)
    exact = '{"n": 0.30000000000000000003}'
    assert (await client.patch("/v1/dead/101", json={"payload": exact})).status_code == 204
    assert dead.rows("SELECT payload::text FROM livewell.dead_job WHERE id = 101") == [(exact,)]
    assert (await client.patch("/v1/dead/101", json={"payload": {"a": 1}, "was": "{}"})).status_code == 400
    assert (await client.patch("/v1/dead/1", json={"payload": {}})).status_code == 404
    assert (await client.patch("/v1/dead/101", json={"payload": {}, "task": "x"})).status_code == 400
    gone = await client.post("/v1/dead/discard", json={"ids": [101, 101, 7]})
    assert gone.json() == {"discarded": 1, "missing": 1}

    which = {"action": "redrive", "filter": {"queue": "mail"}}
    assert (await client.post("/v1/acts/count", json=which)).json() == {"n": 2, "how": "exact"}
    assert (await client.post("/v1/acts", json={**which, "expected": 1})).status_code == 400
    begun = await client.post("/v1/acts", json={**which, "expected": 2, "key": "k"})
    assert begun.status_code == 202
    number = begun.json()["id"]
    again = (await client.post("/v1/acts", json={**which, "expected": 2, "key": "k"})).json()
    assert (again["id"], again["new"], again["twin"]) == (number, False, False)
    twin = (await client.post("/v1/acts", json={**which, "expected": "all of them"})).json()
    assert (twin["id"], twin["new"], twin["twin"], twin["expected"], twin["how"]) == (number, False, True, 2, "exact")
    other = await client.post("/v1/acts", json={"action": "discard", "filter": {}, "expected": 9, "key": "k"})
    assert other.status_code == 400
    assert "which is another" in other.text
    worked(dead)
    shown = (await client.get(f"/v1/acts/{number}")).json()
    assert (shown["state"], shown["done"], shown["skipped"]) == ("done", 2, 0)
    assert [one["id"] for one in (await client.get("/v1/acts")).json()["items"]] == [number]
    assert (await client.post(f"/v1/acts/{number}/cancel")).json() == {"answer": "ended"}
    assert (await client.get("/v1/acts/999999")).status_code == 404


def test_an_edited_payload_hides_nothing() -> None:
    """What turns a line around is an escape in the form, and means the same."""
    assert editable('{"a": "x\u202ey", "n": 1.10}') == '{\n  "a": "x\\u202ey",\n  "n": 1.10\n}'
