CREATE UNLOGGED TABLE "svc_auth_counts" (
	"key_hash" text PRIMARY KEY NOT NULL,
	"count" integer NOT NULL,
	"resets_at" bigint NOT NULL
) WITH (fillfactor = 70);
