ALTER TABLE post ADD COLUMN title VARCHAR(100);
INSERT INTO post (id, body) VALUES (1, 'migrated');
