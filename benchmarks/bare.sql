-- The bare limit: the same claim, effect and completion in one procedure, no client in between.
CREATE TABLE bare_job (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL UNIQUE,
    state smallint NOT NULL DEFAULT 0, run_at timestamptz NOT NULL DEFAULT now(),
    starts smallint NOT NULL DEFAULT 0, token bigint NOT NULL DEFAULT 0,
    lease_until timestamptz, finished_at timestamptz);
CREATE INDEX bare_ready ON bare_job (run_at, id) WHERE state = 0;
CREATE TABLE bare_attempt (
    job_id bigint NOT NULL, number smallint NOT NULL, at timestamptz NOT NULL DEFAULT now());

CREATE PROCEDURE bare_drain(size int) LANGUAGE plpgsql AS $$
DECLARE ids bigint[];
BEGIN
    LOOP
        WITH claimed AS (
            UPDATE bare_job SET state = 1, starts = starts + 1, token = token + 1,
                                lease_until = now() + interval '60 s'
            WHERE id = ANY(ARRAY(SELECT id FROM bare_job WHERE state = 0 AND run_at <= now()
                                 ORDER BY run_at, id LIMIT size FOR UPDATE SKIP LOCKED))
            RETURNING id)
        SELECT array_agg(id) INTO ids FROM claimed;
        COMMIT;
        EXIT WHEN ids IS NULL;
        INSERT INTO effect (key) SELECT key FROM bare_job WHERE id = ANY(ids) ON CONFLICT DO NOTHING;
        UPDATE bare_job SET state = 2, lease_until = NULL, finished_at = now() WHERE id = ANY(ids);
        INSERT INTO bare_attempt (job_id, number) SELECT unnest(ids), 1;
        COMMIT;
    END LOOP;
END $$;
