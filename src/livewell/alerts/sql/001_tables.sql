-- Alerts: what is wrong now (alert), when it went wrong (alert_firing), whom to tell (alert_channel), what was told (notification) and how often it was tried (notification_attempt).
-- Rules reach all this through observe_alerts() alone. Never edited after release; changes are a new numbered file.

CREATE TYPE livewell.alert_state AS ENUM (
    'armed',        -- the condition does not hold; the next time it does, the alert fires
    'fired',        -- the condition holds; everybody is told once
    'cooling'       -- it does not hold any more, but not yet for long enough: if it comes back now, that is the same firing
);
COMMENT ON TYPE livewell.alert_state IS 'States of an alert (R23).';

-- One row per rule: the lock under which its alerts move.
CREATE TABLE livewell.alert_rule (
    name            text COLLATE "C" PRIMARY KEY,
    level           text COLLATE "C" NOT NULL,          -- P0: wake somebody; P1: today; P2: this week
    hysteresis      interval    NOT NULL,               -- how long its condition must be gone before it may fire again
    evaluated_at    timestamptz,                        -- when it last gave an answer
    failed_at       timestamptz,                        -- when it last gave none
    error           text,                               -- and why
    CONSTRAINT alert_rule_name_check CHECK (name ~ '^[a-z][a-z0-9_.-]{0,62}$'),
    CONSTRAINT alert_rule_level_check CHECK (level IN ('P0', 'P1', 'P2')),
    CONSTRAINT alert_rule_hysteresis_check CHECK (hysteresis >= interval '0' AND hysteresis <= interval '30 days')
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
COMMENT ON TABLE livewell.alert_rule IS 'Rules that were ever evaluated; a rule''s row is the lock under which its alerts move.';

CREATE TABLE livewell.alert (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    firings         bigint      NOT NULL DEFAULT 0,
    firing_id       bigint,                             -- the latest
    fired_at        timestamptz,                        -- of the latest firing
    held_at         timestamptz,                        -- when the condition was last seen to hold
    clear_since     timestamptz,                        -- while it cools
    rule            text COLLATE "C" NOT NULL,
    subject         text COLLATE "C" NOT NULL,          -- what it is about: a queue, a type, a limiter
    state           livewell.alert_state NOT NULL,
    level           text COLLATE "C" NOT NULL,
    summary         text        NOT NULL,               -- one sentence, as it was last seen
    CONSTRAINT alert_subject_key UNIQUE (rule, subject),
    CONSTRAINT alert_state_check CHECK ((state = 'cooling') = (clear_since IS NOT NULL)),
    CONSTRAINT alert_text_check CHECK (octet_length(subject) BETWEEN 1 AND 1200 AND char_length(summary) <= 500)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
COMMENT ON TABLE livewell.alert IS 'One row per rule and subject that ever fired: armed, fired or cooling.';

CREATE TABLE livewell.alert_firing (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fired_at        timestamptz NOT NULL,
    ended_at        timestamptz,                        -- when it was armed again
    rule            text COLLATE "C" NOT NULL,
    subject         text COLLATE "C" NOT NULL,
    level           text COLLATE "C" NOT NULL,
    summary         text        NOT NULL                -- as it was when it fired: what people are told
);
COMMENT ON TABLE livewell.alert_firing IS 'One row per firing, from the moment a condition is seen to the moment it has been gone for long enough.';
CREATE INDEX alert_firing_fired_idx ON livewell.alert_firing (fired_at);
CREATE INDEX alert_firing_subject_idx ON livewell.alert_firing (rule, subject, id);

-- No secret is stored: an address is a name in the environment of whoever sends.
CREATE TABLE livewell.alert_channel (
    name            text COLLATE "C" PRIMARY KEY,
    kind            text COLLATE "C" NOT NULL,
    source          text COLLATE "C" NOT NULL,          -- where the address is to be found: env:NAME
    level           text COLLATE "C" NOT NULL,          -- the least urgent level it is told of
    repeats         boolean     NOT NULL,               -- whether the receiver drops what it had before, so that an unknown outcome may be sent again
    since           timestamptz NOT NULL,               -- firings from before are not its
    quiet_until     timestamptz,                        -- the receiver asked for silence
    disabled_at     timestamptz,                        -- the receiver is gone (410); until somebody enables it again
    CONSTRAINT alert_channel_name_check CHECK (name ~ '^[a-z][a-z0-9_-]{0,31}$'),
    CONSTRAINT alert_channel_kind_check CHECK (kind IN ('webhook', 'discord', 'apprise')),
    CONSTRAINT alert_channel_source_check CHECK (source ~ '^env:[A-Za-z_][A-Za-z0-9_]{0,99}$'),
    CONSTRAINT alert_channel_level_check CHECK (level IN ('P0', 'P1', 'P2'))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
COMMENT ON TABLE livewell.alert_channel IS 'Whom to tell. The row is the lock under which one notification after the other is begun.';

CREATE TYPE livewell.notification_state AS ENUM (
    'waiting',      -- nothing has arrived: not tried yet, or refused for now
    'pending',      -- an attempt is under way
    'sent',         -- the receiver said yes
    'refused',      -- the receiver, or our own guard, said no for good; or it was tried too often, or for too long
    'unknown'       -- it may have arrived, and is not sent again
);
COMMENT ON TYPE livewell.notification_state IS 'What became of telling one channel of one firing.';

CREATE TABLE livewell.notification (
    firing_id       bigint      NOT NULL REFERENCES livewell.alert_firing ON DELETE CASCADE,
    next_at         timestamptz NOT NULL,               -- not before this
    settled_at      timestamptz,
    attempts        smallint    NOT NULL DEFAULT 0,
    message_id      uuid        NOT NULL DEFAULT gen_random_uuid(),     -- the same in every attempt: by it a receiver knows a repetition
    state           livewell.notification_state NOT NULL DEFAULT 'waiting',
    channel         text COLLATE "C" NOT NULL,
    CONSTRAINT notification_pkey PRIMARY KEY (firing_id, channel)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
COMMENT ON TABLE livewell.notification IS 'One row per firing and channel: sent once, or why not.';
CREATE INDEX notification_next_idx ON livewell.notification (channel, next_at) WHERE state = 'waiting';

CREATE TYPE livewell.attempt_outcome AS ENUM (
    'pending',      -- recorded, and perhaps sent: committed before the first byte leaves
    'sent',
    'refused',      -- certainly not delivered
    'unknown'       -- sent, and no answer came; or whoever sent it is gone
);
COMMENT ON TYPE livewell.attempt_outcome IS 'How one attempt to send a notification ended.';

CREATE TABLE livewell.notification_attempt (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,      -- whoever settles an attempt has its number
    firing_id       bigint      NOT NULL,
    started_at      timestamptz NOT NULL,
    lease_until     timestamptz NOT NULL,               -- then nobody is believed to be sending it any more
    ended_at        timestamptz,
    status          smallint,                           -- of the HTTP answer
    outcome         livewell.attempt_outcome NOT NULL DEFAULT 'pending',
    channel         text COLLATE "C" NOT NULL,
    detail          text,                               -- in our own words: never the address, never what the receiver wrote
    CONSTRAINT notification_attempt_of_fkey FOREIGN KEY (firing_id, channel) REFERENCES livewell.notification ON DELETE CASCADE,
    CONSTRAINT notification_attempt_detail_check CHECK (char_length(detail) <= 300)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
COMMENT ON TABLE livewell.notification_attempt IS 'The attempt ledger: a row is committed before anything is sent.';
CREATE INDEX notification_attempt_of_idx ON livewell.notification_attempt (firing_id, channel);
CREATE INDEX notification_attempt_pending_idx ON livewell.notification_attempt (lease_until) WHERE outcome = 'pending';

-- "For 30 minutes": what each evaluation saw, as one row per unbroken run of evaluations that saw the same.
CREATE TABLE livewell.alert_lasting (
    rule            text COLLATE "C" NOT NULL,
    subject         text COLLATE "C" NOT NULL,
    since           timestamptz NOT NULL,               -- the first evaluation of the run
    seen_at         timestamptz NOT NULL,               -- the latest
    CONSTRAINT alert_lasting_pkey PRIMARY KEY (rule, subject)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);
COMMENT ON TABLE livewell.alert_lasting IS 'Since when a condition has been seen at every evaluation; evaluations that were missed end the run.';

REVOKE ALL ON TYPE livewell.alert_state, livewell.notification_state, livewell.attempt_outcome FROM PUBLIC;
