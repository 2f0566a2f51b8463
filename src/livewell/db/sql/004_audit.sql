-- 0.8.0: an act says from where it came, what was there before and after, and how many it touched.
-- Never edited after release; changes are a new numbered file.

ALTER TABLE livewell.audit ADD COLUMN origin text;     -- page 192.0.2.7, http 192.0.2.7, cli, python; NULL: an older release wrote it
ALTER TABLE livewell.audit ADD COLUMN before jsonb;    -- what the act changed, as it was; NULL: nothing to compare
ALTER TABLE livewell.audit ADD COLUMN after jsonb;
ALTER TABLE livewell.audit ADD COLUMN n bigint;        -- how many things were changed, where an act may change several
ALTER TABLE livewell.audit ADD CONSTRAINT audit_change_check CHECK (octet_length(origin) <= 200 AND pg_column_size(before) <= 4000 AND pg_column_size(after) <= 4000 AND n >= 0) NOT VALID;
-- The table is small, and its new columns are empty.
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE livewell.audit VALIDATE CONSTRAINT audit_change_check;

-- list_acts: each filter has its index; the id orders a page. Written by hand only, so they cost nothing.
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX audit_actor_idx ON livewell.audit (actor, id);
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX audit_action_idx ON livewell.audit (action, id);
-- squawk-ignore require-concurrent-index-creation
CREATE INDEX audit_subject_idx ON livewell.audit (subject, id);
