// Written by `npm run migrations` from drizzle/postgres.
import type { Migrations } from '../sql-tables.js'

/** The migrations of each part in their order. */
export const POSTGRES_MIGRATIONS: Migrations = {
  users: [{
    name: '0000_tables-users',
    sql: [
      'CREATE TABLE "svc_auth_credentials" (\n\t"user_id" uuid PRIMARY KEY NOT NULL,\n\t"pw_hash" text NOT NULL\n);',
      'CREATE TABLE "svc_auth_provider_links" (\n\t"provider" text NOT NULL,\n\t"subject" text NOT NULL,\n\t"user_id" uuid NOT NULL,\n\t"claims" jsonb NOT NULL,\n\tCONSTRAINT "svc_auth_provider_links_provider_subject_pk" PRIMARY KEY("provider","subject")\n);',
      'CREATE TABLE "svc_auth_users" (\n\t"user_id" uuid PRIMARY KEY NOT NULL,\n\t"email" text,\n\t"name" text,\n\t"claims" jsonb NOT NULL,\n\t"extras" jsonb NOT NULL\n);',
      'ALTER TABLE "svc_auth_credentials" ADD CONSTRAINT "svc_auth_credentials_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;',
      'ALTER TABLE "svc_auth_provider_links" ADD CONSTRAINT "svc_auth_provider_links_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;',
      'CREATE UNIQUE INDEX "svc_auth_provider_links_user_provider_unique" ON "svc_auth_provider_links" USING btree ("user_id","provider");',
      'CREATE UNIQUE INDEX "svc_auth_users_email_unique" ON "svc_auth_users" USING btree ("email" text_pattern_ops);',
      'CREATE INDEX "svc_auth_users_domain" ON "svc_auth_users" USING btree ((extras ->> \'email_domain\') text_pattern_ops);',
      'CREATE INDEX "svc_auth_users_name" ON "svc_auth_users" USING btree ((extras ->> \'name_key\') text_pattern_ops);',
      'CREATE INDEX "svc_auth_users_created" ON "svc_auth_users" USING btree (((extras ->> \'created_at\')::bigint),user_id);',
      'CREATE INDEX "svc_auth_users_blocked" ON "svc_auth_users" USING btree ("user_id") WHERE extras -> \'blocked\' is not null;'
    ]
  }],
  sessions: [{
    name: '0000_tables-sessions',
    sql: [
      'CREATE UNLOGGED TABLE "svc_auth_attempts" (\n\t"key_hash" text PRIMARY KEY NOT NULL,\n\t"count" integer NOT NULL,\n\t"resets_at" bigint NOT NULL\n) WITH (fillfactor = 70);',
      'CREATE TABLE "svc_auth_factors" (\n\t"factor_id" text PRIMARY KEY NOT NULL,\n\t"user_id" uuid NOT NULL,\n\t"kind" text NOT NULL,\n\t"name" text,\n\t"secret" text,\n\t"data" jsonb NOT NULL,\n\t"counter" bigint NOT NULL,\n\t"created_at" bigint NOT NULL,\n\t"used_at" bigint\n);',
      'CREATE TABLE "svc_auth_pending" (\n\t"hash" text PRIMARY KEY NOT NULL,\n\t"kind" text NOT NULL,\n\t"owner" text NOT NULL,\n\t"content" jsonb NOT NULL,\n\t"attempts" integer NOT NULL,\n\t"started_at" bigint NOT NULL\n);',
      'CREATE TABLE "svc_auth_revocations" (\n\t"id" uuid PRIMARY KEY NOT NULL,\n\t"user_id" uuid NOT NULL,\n\t"revoked_at" bigint NOT NULL\n);',
      'CREATE TABLE "svc_auth_sessions" (\n\t"id_hash" text PRIMARY KEY NOT NULL,\n\t"user_id" uuid,\n\t"provider" text,\n\t"claims" jsonb,\n\t"generation" integer NOT NULL,\n\t"proofs" jsonb,\n\t"data" jsonb,\n\t"user_agent" text,\n\t"created_at" bigint NOT NULL,\n\t"seen_at" bigint NOT NULL,\n\t"expires_at" bigint NOT NULL,\n\t"ended_at" bigint,\n\t"signed_out" boolean NOT NULL,\n\t"replaced_by" text,\n\t"shown_user_id" uuid,\n\t"provider_session" text,\n\t"provider_user" text\n) WITH (fillfactor = 85);',
      'ALTER TABLE "svc_auth_factors" ADD CONSTRAINT "svc_auth_factors_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;',
      'ALTER TABLE "svc_auth_sessions" ADD CONSTRAINT "svc_auth_sessions_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;',
      'CREATE INDEX "svc_auth_factors_user" ON "svc_auth_factors" USING btree ("user_id");',
      'CREATE INDEX "svc_auth_pending_owner" ON "svc_auth_pending" USING btree ("owner");',
      'CREATE INDEX "svc_auth_sessions_user" ON "svc_auth_sessions" USING btree ("user_id");',
      'CREATE INDEX "svc_auth_sessions_shown" ON "svc_auth_sessions" USING btree ("shown_user_id") WHERE shown_user_id is not null;',
      'CREATE INDEX "svc_auth_sessions_provider_session" ON "svc_auth_sessions" USING btree ("provider_session") WHERE provider_session is not null;',
      'CREATE INDEX "svc_auth_sessions_provider_user" ON "svc_auth_sessions" USING btree ("provider_user") WHERE provider_user is not null;'
    ]
  }],
  grants: [{
    name: '0000_tables-grants',
    sql: [
      'CREATE TABLE "svc_auth_grants" (\n\t"grant_id" text PRIMARY KEY NOT NULL,\n\t"user_id" uuid NOT NULL,\n\t"generation" integer NOT NULL,\n\t"client_id" text NOT NULL,\n\t"content" jsonb NOT NULL,\n\t"version" integer NOT NULL,\n\t"created_at" bigint NOT NULL,\n\t"used_at" bigint NOT NULL,\n\t"ends_at" bigint NOT NULL\n);',
      'CREATE TABLE "svc_auth_clients" (\n\t"client_id" text PRIMARY KEY NOT NULL,\n\t"content" jsonb NOT NULL,\n\t"created_at" bigint NOT NULL,\n\t"used_at" bigint\n);',
      'ALTER TABLE "svc_auth_grants" ADD CONSTRAINT "svc_auth_grants_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;',
      'CREATE INDEX "svc_auth_grants_user" ON "svc_auth_grants" USING btree ("user_id");'
    ]
  }],
  keys: [{
    name: '0000_tables-keys',
    sql: [
      'CREATE TABLE "svc_auth_keys" (\n\t"key_id" text PRIMARY KEY NOT NULL,\n\t"hash" text NOT NULL,\n\t"user_id" uuid,\n\t"owner" text,\n\t"name" text NOT NULL,\n\t"scopes" jsonb NOT NULL,\n\t"generation" integer NOT NULL,\n\t"created_at" bigint NOT NULL,\n\t"used_at" bigint,\n\t"expires_at" bigint\n);',
      'ALTER TABLE "svc_auth_keys" ADD CONSTRAINT "svc_auth_keys_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;',
      'CREATE INDEX "svc_auth_keys_user" ON "svc_auth_keys" USING btree ("user_id");',
      'CREATE INDEX "svc_auth_keys_owner" ON "svc_auth_keys" USING btree ("owner");'
    ]
  }],
  connections: [{
    name: '0000_tables-connections',
    sql: [
      'CREATE TABLE "svc_auth_connections" (\n\t"connection_id" text PRIMARY KEY NOT NULL,\n\t"issuer" text NOT NULL,\n\t"client_id" text NOT NULL,\n\t"content" jsonb NOT NULL,\n\t"version" integer NOT NULL,\n\t"created_at" bigint NOT NULL,\n\t"removed_at" bigint\n);',
      'CREATE TABLE "svc_auth_domains" (\n\t"domain" text NOT NULL,\n\t"connection_id" text NOT NULL,\n\t"token" text NOT NULL,\n\t"proven_at" bigint,\n\t"checked_at" bigint,\n\t"missing_since" bigint,\n\t"lapsed_at" bigint,\n\tCONSTRAINT "svc_auth_domains_domain_connection_id_pk" PRIMARY KEY("domain","connection_id")\n);',
      'ALTER TABLE "svc_auth_domains" ADD CONSTRAINT "svc_auth_domains_connection_fk" FOREIGN KEY ("connection_id") REFERENCES "public"."svc_auth_connections"("connection_id") ON DELETE cascade ON UPDATE no action;',
      'CREATE UNIQUE INDEX "svc_auth_domains_proven" ON "svc_auth_domains" USING btree ("domain") WHERE proven_at is not null;',
      'CREATE INDEX "svc_auth_domains_connection" ON "svc_auth_domains" USING btree ("connection_id");'
    ]
  }]
}
