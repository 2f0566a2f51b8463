-- Contacts: who is this? People and the identities they are known by, tenant by tenant (O9).
-- Never edited after release; changes are a new numbered file.
--
--      given identities ──resolve_contact──▶ contact ──merged──▶ contact_alias (the id answers for ever)
--                              │                │ ──erased──▶ contact_alias without a contact, contact_tombstone
--                              └──refused──▶ contact_conflict ──decided──▶ merged, or kept apart
--
-- Only live contacts are in livewell.contact. An alias points to a live contact, so a chain has one step and a loop cannot be written.

-- One identity of a call of resolve_contact, ready: its normal form, the rule for its type, and its place in the order in which rows are locked.
CREATE TYPE livewell.given_identity AS (
    place           integer,
    type            text,
    value           text,
    original        text,
    strength        integer,
    merges          text,
    max_per_contact integer
);

CREATE TABLE livewell.contact (
    id              uuid        NOT NULL,
    created_at      timestamptz NOT NULL,
    tenant          text COLLATE "C" NOT NULL,
    fields          jsonb       NOT NULL DEFAULT '{}',  -- what the application wants to keep beside the identities
    PRIMARY KEY (tenant, id),
    CONSTRAINT contact_tenant_check CHECK (octet_length(tenant) BETWEEN 1 AND 200),
    CONSTRAINT contact_fields_check CHECK (jsonb_typeof(fields) = 'object' AND octet_length(fields::text) <= 65536)
);
CREATE INDEX contact_newest_idx ON livewell.contact (tenant, created_at, id);
COMMENT ON TABLE livewell.contact IS 'People, one row for each that is live: neither merged into another nor erased.';

-- The foreign key is checked at the commit: resolve_contact writes identities first and locks their contacts afterwards, and a check at once would wait for a contact before its turn.
CREATE TABLE livewell.contact_identity (
    contact_id      uuid        NOT NULL,
    added_at        timestamptz NOT NULL,
    tenant          text COLLATE "C" NOT NULL,
    type            text COLLATE "C" NOT NULL,
    value           text COLLATE "C" NOT NULL,          -- the normal form, see normal_identity()
    original        text        NOT NULL,               -- as it was given first
    PRIMARY KEY (tenant, type, value),
    CONSTRAINT contact_identity_contact_fkey FOREIGN KEY (tenant, contact_id) REFERENCES livewell.contact (tenant, id) DEFERRABLE INITIALLY DEFERRED,
    CONSTRAINT contact_identity_type_check CHECK (type ~ '^[a-z][a-z0-9_]{0,30}(:[a-z0-9_.-]{1,60})?$'),
    CONSTRAINT contact_identity_value_check CHECK (octet_length(value) BETWEEN 1 AND 500 AND octet_length(original) <= 2000)
);
CREATE INDEX contact_identity_contact_idx ON livewell.contact_identity (tenant, contact_id);
COMMENT ON TABLE livewell.contact_identity IS 'What a contact is known by. An identity belongs to one contact of its tenant.';

CREATE TABLE livewell.contact_alias (
    id              uuid        NOT NULL,
    merged_into     uuid,                               -- NULL: erased
    since           timestamptz NOT NULL,
    tenant          text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id),
    CONSTRAINT contact_alias_contact_fkey FOREIGN KEY (tenant, merged_into) REFERENCES livewell.contact (tenant, id),
    CONSTRAINT contact_alias_loop_check CHECK (merged_into <> id)
);
CREATE INDEX contact_alias_contact_idx ON livewell.contact_alias (tenant, merged_into);
COMMENT ON TABLE livewell.contact_alias IS 'Ids of contacts that are gone, and which contact answers for each. Kept for ever.';

CREATE TABLE livewell.identity_policy (
    changed_at      timestamptz NOT NULL,
    strength        integer     NOT NULL,               -- of two identities in one call the stronger says who it is
    max_per_contact integer     NOT NULL,
    fold_plus       boolean     NOT NULL,               -- e-mail: ann+shop@ is ann@
    fold_dots       boolean     NOT NULL,               -- e-mail: a.nn@ is ann@
    tenant          text COLLATE "C" NOT NULL,
    type            text COLLATE "C" NOT NULL,          -- a type, or what stands before its colon
    merges          text COLLATE "C" NOT NULL,
    blocked         text[]      NOT NULL,               -- normal forms; of e-mail also local parts, with their @
    PRIMARY KEY (tenant, type),
    CONSTRAINT identity_policy_tenant_check CHECK (octet_length(tenant) BETWEEN 1 AND 200),
    CONSTRAINT identity_policy_type_check CHECK (type ~ '^[a-z][a-z0-9_]{0,30}(:[a-z0-9_.-]{1,60})?$'),
    CONSTRAINT identity_policy_strength_check CHECK (strength BETWEEN 0 AND 1000),
    CONSTRAINT identity_policy_max_check CHECK (max_per_contact BETWEEN 1 AND 10000),
    CONSTRAINT identity_policy_blocked_check CHECK (cardinality(blocked) <= 1000),
    CONSTRAINT identity_policy_merges_check CHECK (merges IN (
        'auto',     -- two contacts that it links are merged
        'ask',      -- a person decides whether they are
        'never'     -- it says nothing about who else this is: a device that a family shares
    ))
);
COMMENT ON TABLE livewell.identity_policy IS 'What identities of a type may do, by tenant; identity_rule() has the defaults.';

CREATE TABLE livewell.contact_merge (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    winner_id       uuid        NOT NULL,
    loser_id        uuid        NOT NULL,
    loser_born_at   timestamptz NOT NULL,
    merged_at       timestamptz NOT NULL,
    undone_at       timestamptz,
    tenant          text COLLATE "C" NOT NULL,
    why             text        NOT NULL,               -- which types of identities linked them, or that somebody decided
    done_by         text        NOT NULL,
    moved           jsonb       NOT NULL,               -- identities that came from the loser: [[type, value], …]
    fields          jsonb       NOT NULL,               -- all that the loser had
    gained          text[]      NOT NULL,               -- those of them that the winner did not have
    aliases         uuid[]      NOT NULL,               -- ids for which the loser answered
    undone          jsonb,                              -- what unmerge_contact() answered
    CONSTRAINT contact_merge_ids_check CHECK (winner_id <> loser_id)
);
CREATE INDEX contact_merge_loser_idx ON livewell.contact_merge (tenant, loser_id);
CREATE INDEX contact_merge_winner_idx ON livewell.contact_merge (tenant, winner_id);
CREATE INDEX contact_merge_merged_idx ON livewell.contact_merge (merged_at);
COMMENT ON TABLE livewell.contact_merge IS 'Merges of the last 90 days, with what came from whom: enough to undo each.';

-- No foreign key: a check would wait for the lock of the other contact, whose holder may wait for this row.
CREATE TABLE livewell.contact_conflict (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    one_id          uuid        NOT NULL,
    other_id        uuid        NOT NULL,
    opened_at       timestamptz NOT NULL,
    decided_at      timestamptz,
    tenant          text COLLATE "C" NOT NULL,
    state           text COLLATE "C" NOT NULL,
    why             text        NOT NULL,
    decided_by      text,
    CONSTRAINT contact_conflict_pair_key UNIQUE (tenant, one_id, other_id),
    CONSTRAINT contact_conflict_order_check CHECK (one_id < other_id),
    CONSTRAINT contact_conflict_state_check CHECK (state IN (
        'waiting',  -- for a person
        'apart'     -- somebody said that these are two people, or unmerged them
    ))
);
CREATE INDEX contact_conflict_other_idx ON livewell.contact_conflict (tenant, other_id);
CREATE INDEX contact_conflict_waiting_idx ON livewell.contact_conflict (tenant, id) WHERE state = 'waiting';
COMMENT ON TABLE livewell.contact_conflict IS 'Pairs of contacts that are perhaps one person, and pairs that somebody keeps apart.';

CREATE TABLE livewell.contact_tombstone (
    erased_at       timestamptz NOT NULL,
    tenant          text COLLATE "C" NOT NULL,
    hash            bytea       NOT NULL,               -- of an identity, with the salt of this database
    PRIMARY KEY (tenant, hash),
    CONSTRAINT contact_tombstone_hash_check CHECK (octet_length(hash) = 32)
);
COMMENT ON TABLE livewell.contact_tombstone IS 'Identities of erased people, as hashes: a replayed event does not make them again.';

CREATE TABLE livewell.contact_request (
    answered_at     timestamptz NOT NULL,
    tenant          text COLLATE "C" NOT NULL,
    request         text COLLATE "C" NOT NULL,
    input           bytea       NOT NULL,               -- a salted hash of what was asked
    answer          jsonb       NOT NULL,
    PRIMARY KEY (tenant, request),
    CONSTRAINT contact_request_check CHECK (octet_length(request) BETWEEN 1 AND 200)
);
CREATE INDEX contact_request_answered_idx ON livewell.contact_request (answered_at);
COMMENT ON TABLE livewell.contact_request IS 'Answers of the last week by request id: who lost one asks again and reads the same.';

CREATE TABLE livewell.contact_salt (
    one             boolean     PRIMARY KEY DEFAULT true,
    salt            bytea       NOT NULL,
    CONSTRAINT contact_salt_one_check CHECK (one)
);
COMMENT ON TABLE livewell.contact_salt IS 'What erased identities are hashed with; one row, made once.';
INSERT INTO livewell.contact_salt (salt) VALUES (decode(replace(concat(gen_random_uuid(), gen_random_uuid()), '-', ''), 'hex'));

-- The names of other identity tables, for imports and reports. What is inserted here passes the same rules (put_identity).
CREATE VIEW livewell.contact_identities WITH (security_invoker = true) AS
SELECT i.tenant AS tenant_id, i.contact_id, i.type, i.original AS value, i.value AS normal_value, i.added_at
FROM livewell.contact_identity i;
COMMENT ON VIEW livewell.contact_identities IS 'Identities by their usual names: tenant_id, contact_id, type, value.';

-- Replaced by functions/put_identity.sql.
CREATE FUNCTION livewell.put_identity() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER put_identity INSTEAD OF INSERT ON livewell.contact_identities FOR EACH ROW EXECUTE FUNCTION livewell.put_identity();

-- What is told about contacts, also where no app declares topics: resolve_contact can be called from any language.
SELECT livewell.declare_topic(t.name, '{"on_dead": "continue"}')
FROM unnest(ARRAY['contact.created', 'identity.added', 'contact.merged', 'contact.unmerged', 'contact.erased']) AS t (name);
