"""The append as PostgreSQL runs it: a whole batch in one statement, which is one transaction.

One statement, so that a gateway that is cut off can't hold the lock: once sent, the batch is done or refused without
its gateway. The lock on the one row of `log_head` gives order, gaplessness and the chain; every check is made behind
it, on what is committed. An append that is refused leaves the others of its batch alone, since it has written nothing
yet.

The link is `adapters.log.chain.link`, byte for byte.
"""

APPEND = """CREATE FUNCTION append_batch(
    session uuid,
    instances text[], starts boolean[], gapless boolean[], last_rows integer[],
    streams text[], versions bigint[], topics text[], states bytea[], closes boolean[],
    opening_rows integer[], opening_kinds text[], opening_keys text[],
    scrubbed_appends integer[], scrubbed_streams text[], scrubbed_digests bytea[],
    body_appends integer[], body_streams text[], body_digests bytea[], body_kinds text[], body_sizes bigint[],
    body_times bigint[], body_contents bytea[],
    OUT number integer, OUT first_position bigint, OUT problem text, OUT stream text, OUT refused_version bigint
) RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
    head bigint;
    chained bytea;
    first_row integer := 1;
    opening integer := 1;
    scrub integer := 1;
    body integer := 1;
    stream_bytes bytea;
    topic_bytes bytea;
    is_refused boolean;
BEGIN
    SELECT h.position, h.hash INTO STRICT head, chained FROM log_head AS h FOR UPDATE;
    IF NOT EXISTS (SELECT FROM writer_sessions AS w WHERE w.id = session) THEN
        RAISE EXCEPTION 'this session was replaced by a newer one' USING ERRCODE = 'CS001';
    END IF;
    FOR n IN 1 .. cardinality(instances) LOOP
        number := n;
        first_position := NULL;
        SELECT * INTO problem, stream, refused_version FROM refusal_of(
            instances[n], starts[n], gapless[n],
            streams[first_row:last_rows[n]], versions[first_row:last_rows[n]]);
        is_refused := problem IS NOT NULL;
        IF NOT is_refused THEN
            first_position := head + 1;
        END IF;
        FOR i IN first_row .. last_rows[n] LOOP
            IF NOT is_refused THEN
                head := head + 1;
                stream_bytes := convert_to(streams[i], 'UTF8');
                topic_bytes := convert_to(topics[i], 'UTF8');
                chained := sha256(
                    chained || int8send(head) || int4send(octet_length(stream_bytes)) || stream_bytes
                    || int4send(8) || int8send(versions[i]) || int4send(octet_length(topic_bytes)) || topic_bytes
                    || int4send(octet_length(states[i])) || states[i]);
                INSERT INTO events VALUES (head, streams[i], versions[i], topics[i], states[i], chained);
                IF closes[i] THEN
                    DELETE FROM open_items AS o WHERE o.stream_id = streams[i];
                END IF;
            END IF;
            WHILE opening_rows[opening] = i LOOP
                IF NOT is_refused THEN
                    INSERT INTO open_items VALUES (
                        streams[i], opening_kinds[opening], opening_keys[opening], coalesce(instances[n], ''), head)
                        ON CONFLICT DO NOTHING;
                END IF;
                opening := opening + 1;
            END LOOP;
        END LOOP;
        WHILE scrubbed_appends[scrub] = n LOOP
            IF NOT is_refused THEN
                DELETE FROM bodies AS b
                    WHERE b.stream_id = scrubbed_streams[scrub] AND b.digest = scrubbed_digests[scrub];
            END IF;
            scrub := scrub + 1;
        END LOOP;
        WHILE body_appends[body] = n LOOP
            IF NOT is_refused THEN
                INSERT INTO bodies (stream_id, digest, kind, size_bytes, stored_at_ms, content) VALUES (
                    body_streams[body], body_digests[body], body_kinds[body], body_sizes[body], body_times[body],
                    body_contents[body]) ON CONFLICT DO NOTHING;
            END IF;
            body := body + 1;
        END LOOP;
        first_row := last_rows[n] + 1;
        RETURN NEXT;
    END LOOP;
    UPDATE log_head AS h SET position = head, hash = chained WHERE h.position <> head;
END $$"""

REFUSAL = """CREATE FUNCTION refusal_of(
    instance text, is_start boolean, is_gapless boolean, streams text[], versions bigint[],
    OUT problem text, OUT stream text, OUT refused_version bigint
) LANGUAGE plpgsql AS $$
BEGIN
    IF instance IS NOT NULL AND NOT is_start AND NOT EXISTS (
        SELECT FROM open_items AS o WHERE o.stream_id = instance AND o.kind = 'instance'
    ) THEN
        problem := 'instance';
        RETURN;
    END IF;
    FOR i IN 1 .. cardinality(streams) LOOP
        stream := streams[i];
        refused_version := versions[i];
        IF is_gapless AND versions[i] < 1 THEN
            problem := 'first';
            RETURN;
        END IF;
        IF is_gapless AND versions[i] > 1
            AND (i = 1 OR streams[i - 1] <> streams[i] OR versions[i - 1] <> versions[i] - 1)
            AND NOT EXISTS (
                SELECT FROM events AS e WHERE e.stream_id = streams[i] AND e.version = versions[i] - 1)
            AND NOT EXISTS (
                SELECT FROM generate_series(1, i - 1) AS earlier
                WHERE streams[earlier] = streams[i] AND versions[earlier] = versions[i] - 1)
        THEN
            problem := 'gap';
            RETURN;
        END IF;
        IF EXISTS (SELECT FROM events AS e WHERE e.stream_id = streams[i] AND e.version = versions[i]) THEN
            problem := 'taken';
            RETURN;
        END IF;
    END LOOP;
END $$"""

OPEN_SESSION = """CREATE FUNCTION open_session(former uuid) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    fresh uuid;
BEGIN
    -- Behind the lock: what the former session has sent is either done by now, or refused from now on.
    PERFORM FROM log_head FOR UPDATE;
    DELETE FROM writer_sessions AS w WHERE w.id = former OR w.opened_at < now() - interval '30 days';
    INSERT INTO writer_sessions DEFAULT VALUES RETURNING id INTO fresh;
    RETURN fresh;
END $$"""
