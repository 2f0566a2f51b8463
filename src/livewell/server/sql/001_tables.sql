-- Server: who may come in. Never edited after release; changes are a new numbered file.

-- A secret has at least 160 random bits, so its SHA-256 tells nothing about it and no slow hash is needed.
CREATE TABLE livewell.api_key (
    created_at      timestamptz NOT NULL,
    expires_at      timestamptz,                        -- NULL: never
    revoked_at      timestamptz,
    last_used_at    timestamptz,                        -- moved at most once a minute
    public          boolean     NOT NULL DEFAULT false, -- may live in a web page: its sessions are anonymous viewers
    id              text COLLATE "C" PRIMARY KEY,       -- the part of the key that is no secret
    user_id         text COLLATE "C" NOT NULL,          -- whom row security compares: one key is one user
    kind            text COLLATE "C" NOT NULL,
    name            text        NOT NULL,               -- what people call it
    scopes          text[]      NOT NULL,
    types           text[],                             -- the types it may read; NULL: all
    secret_hash     bytea       NOT NULL,
    CONSTRAINT api_key_id_check CHECK (id ~ '^[A-Za-z0-9]{8,32}$'),
    CONSTRAINT api_key_user_check CHECK (user_id = 'key:' || id),
    CONSTRAINT api_key_kind_check CHECK (kind IN (
        'key',      -- of a machine, until it is revoked or expires
        'link',     -- of a login link: good for one login
        'login'     -- of a person's browser, in its cookie
    )),
    CONSTRAINT api_key_name_check CHECK (char_length(name) BETWEEN 1 AND 100),
    CONSTRAINT api_key_scopes_check CHECK (cardinality(scopes) BETWEEN 1 AND 5 AND scopes <@ ARRAY['view', 'subscribe', 'export', 'operate', 'admin']),
    CONSTRAINT api_key_types_check CHECK (cardinality(types) BETWEEN 1 AND 100),
    CONSTRAINT api_key_public_check CHECK (NOT public OR (kind = 'key' AND scopes <@ ARRAY['view', 'subscribe'])),
    CONSTRAINT api_key_hash_check CHECK (octet_length(secret_hash) = 32),
    CONSTRAINT api_key_expiry_check CHECK (kind = 'key' OR expires_at IS NOT NULL)
);
COMMENT ON TABLE livewell.api_key IS 'API keys, login links and logins of browsers; of a secret only its hash is here.';
