// Written by `npm run migrations` from drizzle/postgres.

/** The migrations in their order. */
export const MIGRATIONS = [
  {
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
  }
]
