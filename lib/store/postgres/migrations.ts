// Written by `npm run migrations` from drizzle/postgres.

/** The migrations in their order. */
export const MIGRATIONS = [
  {
    name: '0000_tables',
    hash: '5de7bb30564ab1708c008369fafc02f8e0c15eeeb69ad3be441cd8ebc1d088bb',
    folderMillis: 1795271976597,
    sql: [
      [
        'CREATE TABLE "svc_auth_credentials" (',
        '\t"user_id" uuid PRIMARY KEY NOT NULL,',
        '\t"pw_hash" text NOT NULL',
        ');',
        ''
      ].join('\n'),
      [
        '',
        'CREATE TABLE "svc_auth_provider_links" (',
        '\t"provider" text NOT NULL,',
        '\t"subject" text NOT NULL,',
        '\t"user_id" uuid NOT NULL,',
        '\t"claims" jsonb NOT NULL,',
        '\tCONSTRAINT "svc_auth_provider_links_provider_subject_pk" PRIMARY KEY("provider","subject")',
        ');',
        ''
      ].join('\n'),
      [
        '',
        'CREATE TABLE "svc_auth_users" (',
        '\t"user_id" uuid PRIMARY KEY NOT NULL,',
        '\t"email" text,',
        '\t"name" text,',
        '\t"claims" jsonb NOT NULL,',
        '\t"extras" jsonb NOT NULL',
        ');',
        ''
      ].join('\n'),
      [
        '',
        'ALTER TABLE "svc_auth_credentials" ADD CONSTRAINT "svc_auth_credentials_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;'
      ].join('\n'),
      [
        '',
        'ALTER TABLE "svc_auth_provider_links" ADD CONSTRAINT "svc_auth_provider_links_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;'
      ].join('\n'),
      [
        '',
        'CREATE UNIQUE INDEX "svc_auth_provider_links_user_provider_unique" ON "svc_auth_provider_links" USING btree ("user_id","provider");'
      ].join('\n'),
      [
        '',
        'CREATE UNIQUE INDEX "svc_auth_users_email_unique" ON "svc_auth_users" USING btree ("email");'
      ].join('\n')
    ]
  },
  {
    name: '0001_users',
    hash: '9034b99d3a5a8fa6a0afed6e1ca4f4b8567f1923a313f825d72f02e246277147',
    folderMillis: 1795375227174,
    sql: [
      [
        'DROP INDEX "svc_auth_users_email_unique";'
      ].join('\n'),
      [
        '',
        'CREATE INDEX "svc_auth_users_blocked" ON "svc_auth_users" USING btree ("user_id") WHERE extras -> \'blocked\' is not null;'
      ].join('\n'),
      [
        '',
        'CREATE UNIQUE INDEX "svc_auth_users_email_unique" ON "svc_auth_users" USING btree ("email" text_pattern_ops);'
      ].join('\n'),
      [
        '',
        'DELETE FROM "svc_auth_credentials" WHERE "user_id" IN (SELECT u."user_id" FROM "svc_auth_users" u JOIN "svc_auth_provider_links" l ON l."user_id" = u."user_id" AND l."provider" = \'local\' JOIN "svc_auth_provider_links" o ON o."provider" = \'local\' AND o."subject" = u."email" WHERE l."subject" <> u."email");'
      ].join('\n'),
      [
        '',
        'DELETE FROM "svc_auth_provider_links" WHERE "provider" = \'local\' AND "user_id" IN (SELECT u."user_id" FROM "svc_auth_users" u JOIN "svc_auth_provider_links" l ON l."user_id" = u."user_id" AND l."provider" = \'local\' JOIN "svc_auth_provider_links" o ON o."provider" = \'local\' AND o."subject" = u."email" WHERE l."subject" <> u."email");'
      ].join('\n'),
      [
        '',
        'UPDATE "svc_auth_provider_links" SET "subject" = u."email", "claims" = ("svc_auth_provider_links"."claims" - \'email_verified\') || jsonb_build_object(\'email\', u."email") FROM "svc_auth_users" u WHERE u."user_id" = "svc_auth_provider_links"."user_id" AND "provider" = \'local\' AND "subject" <> u."email";'
      ].join('\n')
    ]
  },
  {
    name: '0002_sessions',
    hash: '33af3cfa5c3e126435dea5379dd50713a9170728e53a70c5d31928fe57e7570d',
    folderMillis: 1795450817049,
    sql: [
      [
        'CREATE UNLOGGED TABLE "svc_auth_attempts" (',
        '\t"key_hash" text PRIMARY KEY NOT NULL,',
        '\t"count" integer NOT NULL,',
        '\t"resets_at" bigint NOT NULL',
        ') WITH (fillfactor = 70);',
        ''
      ].join('\n'),
      [
        '',
        'CREATE TABLE "svc_auth_pending" (',
        '\t"hash" text PRIMARY KEY NOT NULL,',
        '\t"kind" text NOT NULL,',
        '\t"owner" text NOT NULL,',
        '\t"content" jsonb NOT NULL,',
        '\t"attempts" integer NOT NULL,',
        '\t"started_at" bigint NOT NULL',
        ');',
        ''
      ].join('\n'),
      [
        '',
        'CREATE TABLE "svc_auth_revocations" (',
        '\t"id" uuid PRIMARY KEY NOT NULL,',
        '\t"user_id" uuid NOT NULL,',
        '\t"revoked_at" bigint NOT NULL',
        ');',
        ''
      ].join('\n'),
      [
        '',
        'CREATE TABLE "svc_auth_sessions" (',
        '\t"id_hash" text PRIMARY KEY NOT NULL,',
        '\t"user_id" uuid,',
        '\t"provider" text,',
        '\t"claims" jsonb,',
        '\t"generation" integer NOT NULL,',
        '\t"proofs" jsonb,',
        '\t"data" jsonb,',
        '\t"user_agent" text,',
        '\t"created_at" bigint NOT NULL,',
        '\t"seen_at" bigint NOT NULL,',
        '\t"expires_at" bigint NOT NULL,',
        '\t"ended_at" bigint,',
        '\t"signed_out" boolean NOT NULL,',
        '\t"replaced_by" text',
        ') WITH (fillfactor = 85);',
        ''
      ].join('\n'),
      [
        '',
        'ALTER TABLE "svc_auth_sessions" ADD CONSTRAINT "svc_auth_sessions_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;'
      ].join('\n'),
      [
        '',
        'CREATE INDEX "svc_auth_pending_owner" ON "svc_auth_pending" USING btree ("owner");'
      ].join('\n'),
      [
        '',
        'CREATE INDEX "svc_auth_sessions_user" ON "svc_auth_sessions" USING btree ("user_id");'
      ].join('\n')
    ]
  }
]
