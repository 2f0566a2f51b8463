"""The forms of the pages of contacts, and people to act on. Conflicts and merges have numbers above 7,000."""

from __future__ import annotations

from tests.browser.act_case import ActCase

_ID = "00000000-0000-4000-8000-00000000700{}"

GIVEN = """
INSERT INTO livewell.contact (tenant, id, created_at)
SELECT 'default', ('00000000-0000-4000-8000-00000000700' || n)::uuid, now() - (9 - n) * interval '1 day' FROM generate_series(1, 7) n;
INSERT INTO livewell.contact_identity (tenant, type, value, original, added_at, contact_id)
SELECT 'default', 'email', 'person' || n || '@example.com', 'person' || n || '@example.com', now(),
    ('00000000-0000-4000-8000-00000000700' || n)::uuid FROM generate_series(1, 7) n;
INSERT INTO livewell.contact_conflict (id, tenant, one_id, other_id, state, why, opened_at) OVERRIDING SYSTEM VALUE
VALUES (7001, 'default', '00000000-0000-4000-8000-000000007001', '00000000-0000-4000-8000-000000007002', 'waiting', 'a test', now()),
    (7002, 'default', '00000000-0000-4000-8000-000000007003', '00000000-0000-4000-8000-000000007004', 'waiting', 'a test', now());
INSERT INTO livewell.contact_alias VALUES ('00000000-0000-4000-8000-000000007008', '00000000-0000-4000-8000-000000007005', now(), 'default');
INSERT INTO livewell.contact_merge (id, tenant, winner_id, loser_id, loser_born_at, merged_at, why, done_by, moved, fields, gained, aliases) OVERRIDING SYSTEM VALUE
VALUES (7003, 'default', '00000000-0000-4000-8000-000000007005', '00000000-0000-4000-8000-000000007008', now(), now(), 'a test', 'a test', '[]', '{}', '{}', '{}');
"""
# Somebody with nothing, and somebody who was erased.
ALONE, GONE = _ID.format(1), _ID.format(8)
BARE = f"""
INSERT INTO livewell.contact (tenant, id, created_at) VALUES ('default', '{ALONE}', now());
INSERT INTO livewell.contact_alias (tenant, id, merged_into, since) VALUES ('default', '{GONE}', NULL, now())
"""
# Besides GIVEN: fields, a merge that can be undone and brought something, and text that would be obeyed if it
# were not text. %(text)s is a literal.
HOSTILE_CONTACT = """
UPDATE livewell.contact SET fields = jsonb_build_object('name', %(text)s::text, 'plan', 'gold')
WHERE id = '00000000-0000-4000-8000-000000007001';
INSERT INTO livewell.contact_identity (tenant, type, value, original, added_at, contact_id)
VALUES ('default', 'external_id:shop', left(%(text)s, 200), %(text)s, now(), '00000000-0000-4000-8000-000000007001');
INSERT INTO livewell.contact_merge (tenant, winner_id, loser_id, loser_born_at, merged_at, why, done_by, moved, fields, gained, aliases)
VALUES ('default', '00000000-0000-4000-8000-000000007001', '00000000-0000-4000-8000-000000007009', now(), now(), %(text)s, %(text)s,
    jsonb_build_array(jsonb_build_array('external_id:shop', %(text)s::text)), '{}', '{}', '{}');
UPDATE livewell.contact_conflict SET why = %(text)s WHERE id = 7001
"""


def page_of(n: int) -> str:
    """The page of one of them."""
    return f"/contacts/{_ID.format(n)}"


CONTACTS = [
    ActCase(
        "/contacts/find",
        "/contacts",
        "Look up",
        "Found.",
        ("contacts.find default: email",),
        "SELECT count(*) FROM livewell.audit WHERE action = 'contacts.find'",
        1,
        typed={"Value": "PERSON1@example.com"},
    ),
    ActCase(
        "/contacts/conflicts/7002/decide",
        "/contacts",
        "Merge conflict 7002",
        "They are one contact now.",
        ("contacts.decide default: conflict 7002",),
        "SELECT count(*) FROM livewell.contact_conflict WHERE id = 7002",
        0,
    ),
    ActCase(
        "/contacts/merges/7003/undo",
        page_of(5),
        "Undo merge 7003",
        "It lives again, with 0 identities",
        ("contacts.unmerge default: merge 7003",),
        "SELECT undone_at IS NOT NULL FROM livewell.contact_merge WHERE id = 7003",
        True,
    ),
    ActCase(
        f"{page_of(6)}/erase",
        page_of(6),
        "Erase this person",
        "Erased: 1 identities.",
        ("contacts.erase default: contact",),
        "SELECT count(*) FROM livewell.contact_tombstone",
        1,
    ),
]
