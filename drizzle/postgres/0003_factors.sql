CREATE TABLE "svc_auth_factors" (
	"factor_id" text PRIMARY KEY NOT NULL,
	"user_id" uuid NOT NULL,
	"kind" text NOT NULL,
	"name" text,
	"secret" text,
	"data" jsonb NOT NULL,
	"counter" bigint NOT NULL,
	"created_at" bigint NOT NULL,
	"used_at" bigint
);
--> statement-breakpoint
ALTER TABLE "svc_auth_factors" ADD CONSTRAINT "svc_auth_factors_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "svc_auth_factors_user" ON "svc_auth_factors" USING btree ("user_id");