-- Résumés: documents of people, with every version that an export can name (E16).
-- Never edited after release; changes are a new numbered file.
--
--      create_resume ──▶ document, version 1 ──change_resume(expected)──▶ version 2, 3, …
--                             │                        └──another version by now──▶ conflict, nothing written
--                             └──delete_resume──▶ gone with its versions; exports of it keep their history (E14)
--
-- Rows of one user are never seen by another: row security, by livewell.user_id (E12).

-- The row that every write of a user locks first: what is counted behind it cannot be overtaken.
CREATE TABLE livewell.resume_user (
    bytes           bigint      NOT NULL DEFAULT 0,     -- of all versions of all documents
    documents       integer     NOT NULL DEFAULT 0,
    user_id         text COLLATE "C" PRIMARY KEY,
    CONSTRAINT resume_user_id_check CHECK (octet_length(user_id) BETWEEN 1 AND 200),
    CONSTRAINT resume_user_counts_check CHECK (bytes >= 0 AND documents >= 0)
);
COMMENT ON TABLE livewell.resume_user IS 'How many documents a user has, and their bytes; its row is locked before they change.';

CREATE TABLE livewell.resume_document (
    id              uuid        PRIMARY KEY,
    created_at      timestamptz NOT NULL,
    changed_at      timestamptz NOT NULL,
    version         integer     NOT NULL,               -- the latest
    user_id         text COLLATE "C" NOT NULL,
    name            text        NOT NULL,               -- what its owner calls it
    request         text COLLATE "C",                   -- the key that its maker chose: asked again, it is the same document
    request_hash    bytea,                              -- of what was asked with that key
    CONSTRAINT resume_document_version_check CHECK (version >= 1),
    CONSTRAINT resume_document_name_check CHECK (char_length(name) BETWEEN 1 AND 200),
    CONSTRAINT resume_document_request_check CHECK (octet_length(request) BETWEEN 1 AND 200 AND octet_length(request_hash) = 32)
);
CREATE INDEX resume_document_newest_idx ON livewell.resume_document (user_id, changed_at, id);
CREATE UNIQUE INDEX resume_document_request_idx ON livewell.resume_document (user_id, request) WHERE request IS NOT NULL;
COMMENT ON TABLE livewell.resume_document IS 'Résumé documents, one row for each; what is in them is in resume_version.';

CREATE TABLE livewell.resume_version (
    document_id     uuid        NOT NULL,
    written_at      timestamptz NOT NULL,               -- the instant that a PDF of it is dated with
    version         integer     NOT NULL,
    bytes           integer     NOT NULL,
    user_id         text COLLATE "C" NOT NULL,
    hash            bytea       NOT NULL,               -- SHA-256 of the content
    content         text        NOT NULL,               -- JSON Resume, as the schema writes it
    PRIMARY KEY (document_id, version),
    CONSTRAINT resume_version_document_fkey FOREIGN KEY (document_id) REFERENCES livewell.resume_document (id) ON DELETE CASCADE,
    CONSTRAINT resume_version_bytes_check CHECK (bytes = octet_length(content)),
    CONSTRAINT resume_version_hash_check CHECK (octet_length(hash) = 32)
);
COMMENT ON TABLE livewell.resume_version IS 'Versions of résumés. A version is never changed: an export that names it says what was exported.';

-- Replaced by functions/refuse_resume_change.sql.
CREATE FUNCTION livewell.refuse_resume_change() RETURNS trigger LANGUAGE plpgsql SET search_path = '' AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER refuse_resume_change BEFORE UPDATE ON livewell.resume_version FOR EACH ROW EXECUTE FUNCTION livewell.refuse_resume_change();
