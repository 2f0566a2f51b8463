-- Take up to p_wanted of the unknown keys that strangers may bring up in this minute; answers how
-- many were left to take.
--
-- Called by: spend_cold_keys and spend_cold_read, for somebody anonymous. p_origin: as origin_of
--            answers. p_max: what one user may.
-- Shares (R3, X10): an address may twice what a user may, all strangers of a public key six times:
-- so one address cannot use up what a public key has, nor one public key what others have. And when
-- more than half of what the public key has is spent, an address may have two thirds of what is
-- left in all: three addresses that take all they may leave others some (livewell.shares has the
-- same rule for streams, keys and waits).
-- With m for what an address may, k for its public key, a and f for what the one has spent and the
-- other has left, n more are allowed while a + n ≤ m · 2 · (f - n) / k.
-- Locks: after the session and the viewer, before the ledger; both rows in the order of their
-- names. Counted under the locks.
CREATE OR REPLACE FUNCTION livewell.take_cold(p_origin text, p_max integer, p_wanted integer)
RETURNS integer
LANGUAGE plpgsql
SET search_path = ''
AS $$
DECLARE
    c_shares    CONSTANT pg_catalog.int4[] := '{6,2}';      -- of the public key, of the address
    v_names     pg_catalog.bytea[] := ARRAY(
        SELECT decode(n, 'hex') FROM string_to_table(p_origin, ' ') AS n);
    v_minute    pg_catalog.timestamptz;
    v_taken     integer;
    v_spent     bigint;     -- by the address
    v_left      bigint;     -- of the public key
BEGIN
    IF p_origin IS NULL OR p_wanted <= 0 THEN
        RETURN p_wanted;
    END IF;
    INSERT INTO livewell.cold_budget ("name", minute, spent) SELECT n, '-infinity', 0
    FROM unnest(v_names) AS n ORDER BY n ON CONFLICT ("name") DO NOTHING;
    PERFORM FROM livewell.cold_budget b
    WHERE b.name = ANY (v_names) ORDER BY b.name FOR NO KEY UPDATE;
    v_minute := date_trunc('minute', livewell.now());
    SELECT c_shares[1]::pg_catalog.int8 * p_max - sum(s.spent) FILTER (WHERE s.place = 1),
           sum(s.spent) FILTER (WHERE s.place = 2)
    INTO v_left, v_spent FROM (
        SELECT g.place, CASE WHEN b.minute = v_minute THEN b.spent ELSE 0 END AS spent
        FROM unnest(v_names) WITH ORDINALITY AS g ("name", place)
        JOIN livewell.cold_budget b ON b."name" = g."name") s;
    v_taken := greatest(0, least(p_wanted, v_left, c_shares[2]::pg_catalog.int8 * p_max - v_spent,
        greatest(
            (2 * c_shares[2] * v_left - c_shares[1] * v_spent) / (c_shares[1] + 2 * c_shares[2]),
            CASE WHEN v_spent = 0 THEN 1 ELSE 0 END)));
    UPDATE livewell.cold_budget b
    SET minute = v_minute, spent = CASE WHEN b.minute = v_minute THEN b.spent ELSE 0 END + v_taken
    WHERE b.name = ANY (v_names) AND v_taken > 0;
    RETURN v_taken;
END
$$;
COMMENT ON FUNCTION livewell.take_cold IS
    'Counts unknown keys against the budgets of a public key and an address; answers how many may '
    'be brought up.';
REVOKE ALL ON FUNCTION livewell.take_cold FROM PUBLIC;
