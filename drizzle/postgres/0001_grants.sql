CREATE TABLE "svc_auth_grants" (
	"grant_id" text PRIMARY KEY NOT NULL,
	"user_id" uuid NOT NULL,
	"generation" integer NOT NULL,
	"client_id" text NOT NULL,
	"content" jsonb NOT NULL,
	"version" integer NOT NULL,
	"created_at" bigint NOT NULL,
	"used_at" bigint NOT NULL,
	"ends_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "svc_auth_clients" (
	"client_id" text PRIMARY KEY NOT NULL,
	"content" jsonb NOT NULL,
	"created_at" bigint NOT NULL,
	"used_at" bigint
);
--> statement-breakpoint
ALTER TABLE "svc_auth_grants" ADD CONSTRAINT "svc_auth_grants_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "svc_auth_grants_user" ON "svc_auth_grants" USING btree ("user_id");