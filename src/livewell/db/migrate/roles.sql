-- Create our roles where they are missing; they belong to the whole cluster, so another database may
-- have made them.
--
-- The five below livewell_owner are groups of rights without login. Give one a login and a password,
-- or grant it to a login of yours; in that case set the two timeouts and jit on that login too, as
-- Postgres reads the settings of the role that logs in and of no other. jit: behind a transaction
-- pooler a session cannot turn it off itself.
-- What is already so is not touched: a DBA's own timeouts stay, and two databases migrated at once
-- do not collide on the shared catalogs.
DO $roles$
DECLARE
    v_role record;
    v_name text;
    v_value text;
BEGIN
    FOR v_role IN
        SELECT *
        FROM (VALUES
            ('livewell_owner', '10min', '1min', 'off'),
            ('livewell_api', '10s', '10s', 'off'),
            ('livewell_operate', '30s', '10s', 'off'),
            ('livewell_hub', '10s', '10s', 'off'),
            ('livewell_worker', '30s', '1min', 'off'),
            ('livewell_readonly', '1min', '1min', 'off')
        ) AS wanted (name, statement_timeout, idle_in_transaction_session_timeout, jit)
    LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.rolname = v_role.name) THEN
            BEGIN
                EXECUTE format(
                    'CREATE ROLE %I NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION',
                    v_role.name
                );
            EXCEPTION
                WHEN duplicate_object OR unique_violation THEN
                    NULL;       -- another database made it meanwhile
            END;
        END IF;
        FOR v_name, v_value IN
            SELECT w.key, w.value FROM jsonb_each_text(to_jsonb(v_role) - 'name') AS w
        LOOP
            IF NOT EXISTS (
                SELECT
                FROM pg_catalog.pg_db_role_setting s
                JOIN pg_catalog.pg_roles r ON r.oid = s.setrole
                CROSS JOIN unnest(s.setconfig) AS setting
                WHERE r.rolname = v_role.name AND s.setdatabase = 0 AND setting LIKE v_name || '=%'
            ) THEN
                EXECUTE format('ALTER ROLE %I SET %I = %L', v_role.name, v_name, v_value);
            END IF;
        END LOOP;
    END LOOP;
    IF EXISTS (
        SELECT FROM pg_catalog.pg_roles r
        WHERE r.rolname = 'livewell_owner' AND (r.rolsuper OR r.rolbypassrls)
    ) THEN
        RAISE EXCEPTION 'livewell_owner is a superuser or bypasses row security'
            USING HINT = 'ALTER ROLE livewell_owner NOSUPERUSER NOBYPASSRLS';
    END IF;
    -- Whoever is no superuser must be a member to hand objects to the owner; from 16 on creating a
    -- role gives ADMIN but neither SET nor INHERIT.
    IF current_setting('server_version_num')::integer >= 160000 THEN
        IF NOT (pg_has_role('livewell_owner', 'SET') AND pg_has_role('livewell_owner', 'USAGE')) THEN
            EXECUTE 'GRANT livewell_owner TO CURRENT_USER WITH SET TRUE, INHERIT TRUE';
        END IF;
    ELSIF NOT pg_has_role('livewell_owner', 'USAGE') THEN
        EXECUTE 'GRANT livewell_owner TO CURRENT_USER';
    END IF;
END
$roles$;
