CREATE UNLOGGED TABLE "svc_auth_attempts" (
	"key_hash" text PRIMARY KEY NOT NULL,
	"count" integer NOT NULL,
	"resets_at" bigint NOT NULL
) WITH (fillfactor = 70);
--> statement-breakpoint
CREATE TABLE "svc_auth_credentials" (
	"user_id" uuid PRIMARY KEY NOT NULL,
	"pw_hash" text NOT NULL
);
--> statement-breakpoint
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
CREATE TABLE "svc_auth_pending" (
	"hash" text PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"owner" text NOT NULL,
	"content" jsonb NOT NULL,
	"attempts" integer NOT NULL,
	"started_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "svc_auth_provider_links" (
	"provider" text NOT NULL,
	"subject" text NOT NULL,
	"user_id" uuid NOT NULL,
	"claims" jsonb NOT NULL,
	CONSTRAINT "svc_auth_provider_links_provider_subject_pk" PRIMARY KEY("provider","subject")
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
	"replaced_by" text,
	"shown_user_id" uuid,
	"provider_session" text,
	"provider_user" text
) WITH (fillfactor = 85);
--> statement-breakpoint
CREATE TABLE "svc_auth_users" (
	"user_id" uuid PRIMARY KEY NOT NULL,
	"email" text,
	"name" text,
	"claims" jsonb NOT NULL,
	"extras" jsonb NOT NULL
);
--> statement-breakpoint
ALTER TABLE "svc_auth_credentials" ADD CONSTRAINT "svc_auth_credentials_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "svc_auth_factors" ADD CONSTRAINT "svc_auth_factors_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "svc_auth_provider_links" ADD CONSTRAINT "svc_auth_provider_links_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "svc_auth_sessions" ADD CONSTRAINT "svc_auth_sessions_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "svc_auth_factors_user" ON "svc_auth_factors" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "svc_auth_pending_owner" ON "svc_auth_pending" USING btree ("owner");--> statement-breakpoint
CREATE UNIQUE INDEX "svc_auth_provider_links_user_provider_unique" ON "svc_auth_provider_links" USING btree ("user_id","provider");--> statement-breakpoint
CREATE INDEX "svc_auth_sessions_user" ON "svc_auth_sessions" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "svc_auth_sessions_shown" ON "svc_auth_sessions" USING btree ("shown_user_id") WHERE shown_user_id is not null;--> statement-breakpoint
CREATE INDEX "svc_auth_sessions_provider_session" ON "svc_auth_sessions" USING btree ("provider_session") WHERE provider_session is not null;--> statement-breakpoint
CREATE INDEX "svc_auth_sessions_provider_user" ON "svc_auth_sessions" USING btree ("provider_user") WHERE provider_user is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "svc_auth_users_email_unique" ON "svc_auth_users" USING btree ("email" text_pattern_ops);--> statement-breakpoint
CREATE INDEX "svc_auth_users_domain" ON "svc_auth_users" USING btree ((extras ->> 'email_domain') text_pattern_ops);--> statement-breakpoint
CREATE INDEX "svc_auth_users_name" ON "svc_auth_users" USING btree ((extras ->> 'name_key') text_pattern_ops);--> statement-breakpoint
CREATE INDEX "svc_auth_users_created" ON "svc_auth_users" USING btree (((extras ->> 'created_at')::bigint),user_id);--> statement-breakpoint
CREATE INDEX "svc_auth_users_blocked" ON "svc_auth_users" USING btree ("user_id") WHERE extras -> 'blocked' is not null;--> statement-breakpoint
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
--> statement-breakpoint
CREATE TABLE "svc_auth_keys" (
	"key_id" text PRIMARY KEY NOT NULL,
	"hash" text NOT NULL,
	"user_id" uuid,
	"owner" text,
	"name" text NOT NULL,
	"scopes" jsonb NOT NULL,
	"generation" integer NOT NULL,
	"created_at" bigint NOT NULL,
	"used_at" bigint,
	"expires_at" bigint
);
--> statement-breakpoint
ALTER TABLE "svc_auth_keys" ADD CONSTRAINT "svc_auth_keys_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "svc_auth_keys_user" ON "svc_auth_keys" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "svc_auth_keys_owner" ON "svc_auth_keys" USING btree ("owner");--> statement-breakpoint
CREATE TABLE "svc_auth_connections" (
	"connection_id" text PRIMARY KEY NOT NULL,
	"issuer" text NOT NULL,
	"client_id" text NOT NULL,
	"content" jsonb NOT NULL,
	"version" integer NOT NULL,
	"created_at" bigint NOT NULL,
	"removed_at" bigint
);
--> statement-breakpoint
CREATE TABLE "svc_auth_domains" (
	"domain" text NOT NULL,
	"connection_id" text NOT NULL,
	"token" text NOT NULL,
	"proven_at" bigint,
	"checked_at" bigint,
	"missing_since" bigint,
	"lapsed_at" bigint,
	CONSTRAINT "svc_auth_domains_domain_connection_id_pk" PRIMARY KEY("domain","connection_id")
);
--> statement-breakpoint
ALTER TABLE "svc_auth_domains" ADD CONSTRAINT "svc_auth_domains_connection_fk" FOREIGN KEY ("connection_id") REFERENCES "public"."svc_auth_connections"("connection_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "svc_auth_domains_proven" ON "svc_auth_domains" USING btree ("domain") WHERE proven_at is not null;--> statement-breakpoint
CREATE INDEX "svc_auth_domains_connection" ON "svc_auth_domains" USING btree ("connection_id");