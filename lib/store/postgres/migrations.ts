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
    name: '0001_user_indexes',
    hash: '6feaefd0f2da2c1e38f2020820eca9cec4054e8e953ac408dbf8849d4dee81f8',
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
      ].join('\n')
    ]
  },
  {
    name: '0002_sessions',
    hash: '74a41dd0b05faf72284c86dcadfacf17fded5386d50a331a63a581bad7c9ee55',
    folderMillis: 1795400481146,
    sql: [
      [
        'CREATE TABLE "svc_auth_pending" (',
        '\t"state_hash" text PRIMARY KEY NOT NULL,',
        '\t"session_hash" text NOT NULL,',
        '\t"content" jsonb NOT NULL,',
        '\t"started_at" bigint NOT NULL',
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
        'CREATE INDEX "svc_auth_pending_session" ON "svc_auth_pending" USING btree ("session_hash");'
      ].join('\n'),
      [
        '',
        'CREATE INDEX "svc_auth_sessions_user" ON "svc_auth_sessions" USING btree ("user_id");'
      ].join('\n')
    ]
  },
  {
    name: '0003_counts',
    hash: '6706823d6a184163a9b5cdd7daed4a7b39b261be9e683bb969a33e72c8b0e935',
    folderMillis: 1795400482607,
    sql: [
      [
        'CREATE UNLOGGED TABLE "svc_auth_counts" (',
        '\t"key_hash" text PRIMARY KEY NOT NULL,',
        '\t"count" integer NOT NULL,',
        '\t"resets_at" bigint NOT NULL',
        ') WITH (fillfactor = 70);',
        ''
      ].join('\n')
    ]
  },
  {
    name: '0004_endings',
    hash: 'b18e82b359a79f6fa4456127880b5eb309af9e5b9784e66446a6c3bc4d8bb59a',
    folderMillis: 1795400483190,
    sql: [
      [
        'CREATE TABLE "svc_auth_endings" (',
        '\t"id" uuid PRIMARY KEY NOT NULL,',
        '\t"user_id" uuid NOT NULL,',
        '\t"ended_at" bigint NOT NULL',
        ');',
        ''
      ].join('\n')
    ]
  }
]
