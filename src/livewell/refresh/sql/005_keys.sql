-- What operators look at, key by key. Never edited after release; changes are a new numbered file.

-- Failing keys of a type, without reading the others. Only rows of failing keys are in it: a key
-- that is well costs nothing here.
CREATE INDEX ledger_failing_idx ON livewell.ledger (data_type, key) WHERE failing_since IS NOT NULL;
