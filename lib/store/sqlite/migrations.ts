// Written by `npm run migrations` from drizzle/sqlite.

/** The migrations in their order. */
export const MIGRATIONS = [
  {
    name: '0000_tables',
    hash: 'a5e0d1c34c29db3711b6d1cf17d4e46d61dfb9fd80e9055020c416356c9c5eca',
    folderMillis: 1795249427205,
    sql: [
      'CREATE TABLE `svc_auth_credentials` (\n' +
        '\t`user_id` text PRIMARY KEY NOT NULL,\n' +
        '\t`pw_hash` text NOT NULL,\n' +
        '\tFOREIGN KEY (`user_id`) REFERENCES `svc_auth_users`(`user_id`) ON UPDATE no action ON DELETE cascade\n' +
        ');',
      'CREATE TABLE `svc_auth_provider_links` (\n' +
        '\t`provider` text NOT NULL,\n' +
        '\t`subject` text NOT NULL,\n' +
        '\t`user_id` text NOT NULL,\n' +
        '\t`claims` text NOT NULL,\n' +
        '\tPRIMARY KEY(`provider`, `subject`),\n' +
        '\tFOREIGN KEY (`user_id`) REFERENCES `svc_auth_users`(`user_id`) ON UPDATE no action ON DELETE cascade\n' +
        ');',
      'CREATE UNIQUE INDEX `svc_auth_provider_links_user_provider_unique` ON `svc_auth_provider_links` (`user_id`,`provider`);',
      'CREATE TABLE `svc_auth_users` (\n' +
        '\t`user_id` text PRIMARY KEY NOT NULL,\n' +
        '\t`email` text,\n' +
        '\t`name` text,\n' +
        '\t`claims` text NOT NULL,\n' +
        '\t`extras` text NOT NULL\n' +
        ');',
      'CREATE UNIQUE INDEX `svc_auth_users_email_unique` ON `svc_auth_users` (`email`);'
    ]
  },
  {
    name: '0001_users',
    hash: 'dc6f57611423123d7e41203743e4008bb5d9d59b8d28f0df481b05da6c108463',
    folderMillis: 1795375228091,
    sql: [
      'CREATE INDEX `svc_auth_users_blocked` ON `svc_auth_users` (`user_id`) WHERE json_extract(extras, \'$.blocked\') is not null;',
      'DELETE FROM `svc_auth_credentials` WHERE `user_id` IN (SELECT u.`user_id` FROM `svc_auth_users` u JOIN `svc_auth_provider_links` l ON l.`user_id` = u.`user_id` AND l.`provider` = \'local\' JOIN `svc_auth_provider_links` o ON o.`provider` = \'local\' AND o.`subject` = u.`email` WHERE l.`subject` <> u.`email`);',
      'DELETE FROM `svc_auth_provider_links` WHERE `provider` = \'local\' AND `user_id` IN (SELECT u.`user_id` FROM `svc_auth_users` u JOIN `svc_auth_provider_links` l ON l.`user_id` = u.`user_id` AND l.`provider` = \'local\' JOIN `svc_auth_provider_links` o ON o.`provider` = \'local\' AND o.`subject` = u.`email` WHERE l.`subject` <> u.`email`);',
      'UPDATE `svc_auth_provider_links` SET `subject` = u.`email`, `claims` = json_set(json_remove(`svc_auth_provider_links`.`claims`, \'$.email_verified\'), \'$.email\', u.`email`) FROM `svc_auth_users` u WHERE u.`user_id` = `svc_auth_provider_links`.`user_id` AND `provider` = \'local\' AND `subject` <> u.`email`;'
    ]
  },
  {
    name: '0002_sessions',
    hash: 'f1a737f3b81192014e06b332c805bd9e785d679e860df81a21137114b62b8ef4',
    folderMillis: 1795450821608,
    sql: [
      'CREATE TABLE `svc_auth_pending` (\n' +
        '\t`hash` text PRIMARY KEY NOT NULL,\n' +
        '\t`kind` text NOT NULL,\n' +
        '\t`owner` text NOT NULL,\n' +
        '\t`content` text NOT NULL,\n' +
        '\t`attempts` integer NOT NULL,\n' +
        '\t`started_at` integer NOT NULL\n' +
        ');',
      'CREATE INDEX `svc_auth_pending_owner` ON `svc_auth_pending` (`owner`);',
      'CREATE TABLE `svc_auth_sessions` (\n' +
        '\t`id_hash` text PRIMARY KEY NOT NULL,\n' +
        '\t`user_id` text,\n' +
        '\t`provider` text,\n' +
        '\t`claims` text,\n' +
        '\t`generation` integer NOT NULL,\n' +
        '\t`proofs` text,\n' +
        '\t`data` text,\n' +
        '\t`user_agent` text,\n' +
        '\t`created_at` integer NOT NULL,\n' +
        '\t`seen_at` integer NOT NULL,\n' +
        '\t`expires_at` integer NOT NULL,\n' +
        '\t`ended_at` integer,\n' +
        '\t`signed_out` integer NOT NULL,\n' +
        '\t`replaced_by` text,\n' +
        '\tFOREIGN KEY (`user_id`) REFERENCES `svc_auth_users`(`user_id`) ON UPDATE no action ON DELETE cascade\n' +
        ');',
      'CREATE INDEX `svc_auth_sessions_user` ON `svc_auth_sessions` (`user_id`);'
    ]
  },
  {
    name: '0003_factors',
    hash: 'ff469ecb9994fc750875dfbff381becf044764ce30d20814884d4902be8bcc64',
    folderMillis: 1795514984281,
    sql: [
      'CREATE TABLE `svc_auth_factors` (\n' +
        '\t`factor_id` text PRIMARY KEY NOT NULL,\n' +
        '\t`user_id` text NOT NULL,\n' +
        '\t`kind` text NOT NULL,\n' +
        '\t`name` text,\n' +
        '\t`secret` text,\n' +
        '\t`data` text NOT NULL,\n' +
        '\t`counter` integer NOT NULL,\n' +
        '\t`created_at` integer NOT NULL,\n' +
        '\t`used_at` integer,\n' +
        '\tFOREIGN KEY (`user_id`) REFERENCES `svc_auth_users`(`user_id`) ON UPDATE no action ON DELETE cascade\n' +
        ');',
      'CREATE INDEX `svc_auth_factors_user` ON `svc_auth_factors` (`user_id`);'
    ]
  }
]
