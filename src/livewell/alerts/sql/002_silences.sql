-- 0.8.0: silences, and tests of channels. Never edited after release; changes are a new numbered
-- file.

CREATE TABLE livewell.alert_silence (
    rule            text COLLATE "C" NOT NULL,
    subject         text COLLATE "C" NOT NULL,          -- '': every subject of the rule
    since           timestamptz NOT NULL,
    until           timestamptz NOT NULL,               -- then people are told again
    silenced_by     text        NOT NULL,
    CONSTRAINT alert_silence_pkey PRIMARY KEY (rule, subject),
    CONSTRAINT alert_silence_until_check CHECK (until <= since + interval '14 days'),
    CONSTRAINT alert_silence_texts_check CHECK (
        rule ~ '^[a-z][a-z0-9_.-]{0,62}$' AND octet_length(subject) <= 1200
        AND char_length(silenced_by) <= 500)
) WITH (fillfactor = 50);
COMMENT ON TABLE livewell.alert_silence IS
    'Of what nobody is told, and until when. A row stays for a while after its end: a firing that '
    'was over by then is not told any more.';

ALTER TABLE livewell.notification
    -- refused because of a silence: the firing was over before anybody was to be told
    ADD COLUMN silenced_at timestamptz;

-- They get more columns. A new database does not have them yet.
DO $drop$
BEGIN
    IF to_regprocedure('livewell.list_alerts(text, bigint, integer)') IS NOT NULL THEN
        DROP FUNCTION livewell.list_alerts(text, bigint, integer);
    END IF;
END
$drop$;

-- list_urgent_alerts: what is wrong now, the worst first. Alerts are few, and a level or state that
-- changes is seldom.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX alert_urgent_idx ON livewell.alert ((state <> 'fired'), level, id)
    WHERE state <> 'armed';
