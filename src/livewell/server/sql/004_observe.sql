-- 0.8.0: the scope observe, to look at the dashboard.
-- Never edited after release; changes are a new numbered file.

-- Keys are few.
-- squawk-ignore ban-drop-constraint
ALTER TABLE livewell.api_key DROP CONSTRAINT api_key_scopes_check;
ALTER TABLE livewell.api_key ADD CONSTRAINT api_key_scopes_check CHECK (cardinality(scopes) BETWEEN 1 AND 6 AND scopes <@ ARRAY['view', 'subscribe', 'export', 'observe', 'operate', 'admin']) NOT VALID;
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE livewell.api_key VALIDATE CONSTRAINT api_key_scopes_check;
-- What the dashboard shows concerns every type (M2).
-- squawk-ignore ban-drop-constraint
ALTER TABLE livewell.api_key DROP CONSTRAINT api_key_bound_check;
ALTER TABLE livewell.api_key ADD CONSTRAINT api_key_bound_check CHECK (types IS NULL OR revoked_at IS NOT NULL OR NOT scopes && ARRAY['observe', 'operate', 'admin']) NOT VALID;
-- squawk-ignore constraint-missing-not-valid
ALTER TABLE livewell.api_key VALIDATE CONSTRAINT api_key_bound_check;
