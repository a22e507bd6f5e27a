// Written by `npm run migrations` from drizzle/postgres.

/** The migrations in their order. */
export const MIGRATIONS = [
  {
    name: '0000_tables',
    hash: '5de7bb30564ab1708c008369fafc02f8e0c15eeeb69ad3be441cd8ebc1d088bb',
    folderMillis: 1795271976597,
    sql: [
      'CREATE TABLE "svc_auth_credentials" (\n' +
        '\t"user_id" uuid PRIMARY KEY NOT NULL,\n' +
        '\t"pw_hash" text NOT NULL\n' +
        ');',
      'CREATE TABLE "svc_auth_provider_links" (\n' +
        '\t"provider" text NOT NULL,\n' +
        '\t"subject" text NOT NULL,\n' +
        '\t"user_id" uuid NOT NULL,\n' +
        '\t"claims" jsonb NOT NULL,\n' +
        '\tCONSTRAINT "svc_auth_provider_links_provider_subject_pk" PRIMARY KEY("provider","subject")\n' +
        ');',
      'CREATE TABLE "svc_auth_users" (\n' +
        '\t"user_id" uuid PRIMARY KEY NOT NULL,\n' +
        '\t"email" text,\n' +
        '\t"name" text,\n' +
        '\t"claims" jsonb NOT NULL,\n' +
        '\t"extras" jsonb NOT NULL\n' +
        ');',
      'ALTER TABLE "svc_auth_credentials" ADD CONSTRAINT "svc_auth_credentials_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;',
      'ALTER TABLE "svc_auth_provider_links" ADD CONSTRAINT "svc_auth_provider_links_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;',
      'CREATE UNIQUE INDEX "svc_auth_provider_links_user_provider_unique" ON "svc_auth_provider_links" USING btree ("user_id","provider");',
      'CREATE UNIQUE INDEX "svc_auth_users_email_unique" ON "svc_auth_users" USING btree ("email");'
    ]
  },
  {
    name: '0001_users',
    hash: '9034b99d3a5a8fa6a0afed6e1ca4f4b8567f1923a313f825d72f02e246277147',
    folderMillis: 1795375227174,
    sql: [
      'DROP INDEX "svc_auth_users_email_unique";',
      'CREATE INDEX "svc_auth_users_blocked" ON "svc_auth_users" USING btree ("user_id") WHERE extras -> \'blocked\' is not null;',
      'CREATE UNIQUE INDEX "svc_auth_users_email_unique" ON "svc_auth_users" USING btree ("email" text_pattern_ops);',
      'DELETE FROM "svc_auth_credentials" WHERE "user_id" IN (SELECT u."user_id" FROM "svc_auth_users" u JOIN "svc_auth_provider_links" l ON l."user_id" = u."user_id" AND l."provider" = \'local\' JOIN "svc_auth_provider_links" o ON o."provider" = \'local\' AND o."subject" = u."email" WHERE l."subject" <> u."email");',
      'DELETE FROM "svc_auth_provider_links" WHERE "provider" = \'local\' AND "user_id" IN (SELECT u."user_id" FROM "svc_auth_users" u JOIN "svc_auth_provider_links" l ON l."user_id" = u."user_id" AND l."provider" = \'local\' JOIN "svc_auth_provider_links" o ON o."provider" = \'local\' AND o."subject" = u."email" WHERE l."subject" <> u."email");',
      'UPDATE "svc_auth_provider_links" SET "subject" = u."email", "claims" = ("svc_auth_provider_links"."claims" - \'email_verified\') || jsonb_build_object(\'email\', u."email") FROM "svc_auth_users" u WHERE u."user_id" = "svc_auth_provider_links"."user_id" AND "provider" = \'local\' AND "subject" <> u."email";'
    ]
  },
  {
    name: '0002_sessions',
    hash: '33af3cfa5c3e126435dea5379dd50713a9170728e53a70c5d31928fe57e7570d',
    folderMillis: 1795450817049,
    sql: [
      'CREATE UNLOGGED TABLE "svc_auth_attempts" (\n' +
        '\t"key_hash" text PRIMARY KEY NOT NULL,\n' +
        '\t"count" integer NOT NULL,\n' +
        '\t"resets_at" bigint NOT NULL\n' +
        ') WITH (fillfactor = 70);',
      'CREATE TABLE "svc_auth_pending" (\n' +
        '\t"hash" text PRIMARY KEY NOT NULL,\n' +
        '\t"kind" text NOT NULL,\n' +
        '\t"owner" text NOT NULL,\n' +
        '\t"content" jsonb NOT NULL,\n' +
        '\t"attempts" integer NOT NULL,\n' +
        '\t"started_at" bigint NOT NULL\n' +
        ');',
      'CREATE TABLE "svc_auth_revocations" (\n' +
        '\t"id" uuid PRIMARY KEY NOT NULL,\n' +
        '\t"user_id" uuid NOT NULL,\n' +
        '\t"revoked_at" bigint NOT NULL\n' +
        ');',
      'CREATE TABLE "svc_auth_sessions" (\n' +
        '\t"id_hash" text PRIMARY KEY NOT NULL,\n' +
        '\t"user_id" uuid,\n' +
        '\t"provider" text,\n' +
        '\t"claims" jsonb,\n' +
        '\t"generation" integer NOT NULL,\n' +
        '\t"proofs" jsonb,\n' +
        '\t"data" jsonb,\n' +
        '\t"user_agent" text,\n' +
        '\t"created_at" bigint NOT NULL,\n' +
        '\t"seen_at" bigint NOT NULL,\n' +
        '\t"expires_at" bigint NOT NULL,\n' +
        '\t"ended_at" bigint,\n' +
        '\t"signed_out" boolean NOT NULL,\n' +
        '\t"replaced_by" text\n' +
        ') WITH (fillfactor = 85);',
      'ALTER TABLE "svc_auth_sessions" ADD CONSTRAINT "svc_auth_sessions_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;',
      'CREATE INDEX "svc_auth_pending_owner" ON "svc_auth_pending" USING btree ("owner");',
      'CREATE INDEX "svc_auth_sessions_user" ON "svc_auth_sessions" USING btree ("user_id");'
    ]
  },
  {
    name: '0003_factors',
    hash: 'd119bf42263d38f9f674718d869dd705adf95036c02ccbd3a9f2517cf2409a0d',
    folderMillis: 1795514982236,
    sql: [
      'CREATE TABLE "svc_auth_factors" (\n' +
        '\t"factor_id" text PRIMARY KEY NOT NULL,\n' +
        '\t"user_id" uuid NOT NULL,\n' +
        '\t"kind" text NOT NULL,\n' +
        '\t"name" text,\n' +
        '\t"secret" text,\n' +
        '\t"data" jsonb NOT NULL,\n' +
        '\t"counter" bigint NOT NULL,\n' +
        '\t"created_at" bigint NOT NULL,\n' +
        '\t"used_at" bigint\n' +
        ');',
      'ALTER TABLE "svc_auth_factors" ADD CONSTRAINT "svc_auth_factors_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;',
      'CREATE INDEX "svc_auth_factors_user" ON "svc_auth_factors" USING btree ("user_id");'
    ]
  }
]
