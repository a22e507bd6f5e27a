CREATE UNLOGGED TABLE "svc_auth_attempts" (
	"key_hash" text PRIMARY KEY NOT NULL,
	"count" integer NOT NULL,
	"resets_at" bigint NOT NULL
) WITH (fillfactor = 70);
--> statement-breakpoint
CREATE TABLE "svc_auth_pending" (
	"hash" text PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"owner" text NOT NULL,
	"content" jsonb NOT NULL,
	"attempts" integer NOT NULL,
	"started_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "svc_auth_revocations" (
	"id" uuid PRIMARY KEY NOT NULL,
	"user_id" uuid NOT NULL,
	"revoked_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "svc_auth_sessions" (
	"id_hash" text PRIMARY KEY NOT NULL,
	"user_id" uuid,
	"provider" text,
	"claims" jsonb,
	"generation" integer NOT NULL,
	"proofs" jsonb,
	"data" jsonb,
	"user_agent" text,
	"created_at" bigint NOT NULL,
	"seen_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL,
	"ended_at" bigint,
	"signed_out" boolean NOT NULL,
	"replaced_by" text
) WITH (fillfactor = 85);
--> statement-breakpoint
ALTER TABLE "svc_auth_sessions" ADD CONSTRAINT "svc_auth_sessions_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "svc_auth_pending_owner" ON "svc_auth_pending" USING btree ("owner");--> statement-breakpoint
CREATE INDEX "svc_auth_sessions_user" ON "svc_auth_sessions" USING btree ("user_id");