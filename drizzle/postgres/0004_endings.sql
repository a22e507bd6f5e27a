CREATE TABLE "svc_auth_endings" (
	"id" uuid PRIMARY KEY NOT NULL,
	"user_id" uuid NOT NULL,
	"ended_at" bigint NOT NULL
);
