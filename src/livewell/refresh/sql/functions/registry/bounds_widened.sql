-- Whether whatever the old bounds allow, the new ones allow too: then the CHECK may be replaced
-- without looking at the rows.
--
-- Called by: compare_bounds; compare_table(). The old bounds are the constraint's comment, which a
--            person may have written over: what cannot be read is not wider.
CREATE OR REPLACE FUNCTION livewell.bounds_widened(p_old text, p_new jsonb, p_type text)
RETURNS boolean
LANGUAGE plpgsql
STABLE
SET search_path = ''
AS $$
DECLARE
    v_old       jsonb := p_old::jsonb;
    v_number    boolean := p_type IN ('numeric', 'bigint', 'integer', 'double');
    v_low       integer;    -- -1: the new minimum is lower, 0: the same, 1: higher
    v_high      integer;
BEGIN
    IF jsonb_typeof(v_old) IS DISTINCT FROM 'object' THEN
        RETURN false;
    END IF;
    v_low := CASE WHEN NOT p_new ? 'min' THEN -1 WHEN NOT v_old ? 'min' THEN 1
        WHEN v_number THEN sign((p_new ->> 'min')::numeric - (v_old ->> 'min')::numeric)
        ELSE sign(
            extract(
                epoch FROM (p_new ->> 'min')::timestamptz - (v_old ->> 'min')::timestamptz)) END;
    v_high := CASE WHEN NOT p_new ? 'max' THEN 1 WHEN NOT v_old ? 'max' THEN -1
        WHEN v_number THEN sign((p_new ->> 'max')::numeric - (v_old ->> 'max')::numeric)
        ELSE sign(
            extract(
                epoch FROM (p_new ->> 'max')::timestamptz - (v_old ->> 'max')::timestamptz)) END;
    RETURN (
        v_low < 0
            OR v_low = 0
                AND (
                    coalesce((v_old ->> 'above_min')::boolean, false)
                        OR NOT coalesce((p_new ->> 'above_min')::boolean, false)))
        AND (
            v_high > 0
                OR v_high = 0
                    AND (
                        coalesce((v_old ->> 'below_max')::boolean, false)
                            OR NOT coalesce((p_new ->> 'below_max')::boolean, false)))
        AND (
            NOT p_new ? 'max_length'
                OR v_old ? 'max_length'
                    AND (p_new ->> 'max_length')::bigint >= (v_old ->> 'max_length')::bigint)
        AND (NOT p_new ? 'one_of' OR v_old ? 'one_of' AND p_new -> 'one_of' @> (v_old -> 'one_of'));
EXCEPTION
    WHEN data_exception OR invalid_text_representation THEN
        RETURN false;
END
$$;
COMMENT ON FUNCTION livewell.bounds_widened IS
    'Whether new bounds of a column allow all that the old ones did.';
REVOKE ALL ON FUNCTION livewell.bounds_widened FROM PUBLIC;
