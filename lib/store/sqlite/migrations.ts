// Written by `npm run migrations` from drizzle/sqlite.

/** The migrations in their order. */
export const MIGRATIONS = [
  {
    name: '0000_tables',
    hash: 'a5e0d1c34c29db3711b6d1cf17d4e46d61dfb9fd80e9055020c416356c9c5eca',
    folderMillis: 1795249427205,
    sql: [
      [
        'CREATE TABLE `svc_auth_credentials` (',
        '\t`user_id` text PRIMARY KEY NOT NULL,',
        '\t`pw_hash` text NOT NULL,',
        '\tFOREIGN KEY (`user_id`) REFERENCES `svc_auth_users`(`user_id`) ON UPDATE no action ON DELETE cascade',
        ');',
        ''
      ].join('\n'),
      [
        '',
        'CREATE TABLE `svc_auth_provider_links` (',
        '\t`provider` text NOT NULL,',
        '\t`subject` text NOT NULL,',
        '\t`user_id` text NOT NULL,',
        '\t`claims` text NOT NULL,',
        '\tPRIMARY KEY(`provider`, `subject`),',
        '\tFOREIGN KEY (`user_id`) REFERENCES `svc_auth_users`(`user_id`) ON UPDATE no action ON DELETE cascade',
        ');',
        ''
      ].join('\n'),
      [
        '',
        'CREATE UNIQUE INDEX `svc_auth_provider_links_user_provider_unique` ON `svc_auth_provider_links` (`user_id`,`provider`);'
      ].join('\n'),
      [
        '',
        'CREATE TABLE `svc_auth_users` (',
        '\t`user_id` text PRIMARY KEY NOT NULL,',
        '\t`email` text,',
        '\t`name` text,',
        '\t`claims` text NOT NULL,',
        '\t`extras` text NOT NULL',
        ');',
        ''
      ].join('\n'),
      [
        '',
        'CREATE UNIQUE INDEX `svc_auth_users_email_unique` ON `svc_auth_users` (`email`);'
      ].join('\n')
    ]
  },
  {
    name: '0001_users',
    hash: 'dc6f57611423123d7e41203743e4008bb5d9d59b8d28f0df481b05da6c108463',
    folderMillis: 1795375228091,
    sql: [
      [
        'CREATE INDEX `svc_auth_users_blocked` ON `svc_auth_users` (`user_id`) WHERE json_extract(extras, \'$.blocked\') is not null;'
      ].join('\n'),
      [
        '',
        'DELETE FROM `svc_auth_credentials` WHERE `user_id` IN (SELECT u.`user_id` FROM `svc_auth_users` u JOIN `svc_auth_provider_links` l ON l.`user_id` = u.`user_id` AND l.`provider` = \'local\' JOIN `svc_auth_provider_links` o ON o.`provider` = \'local\' AND o.`subject` = u.`email` WHERE l.`subject` <> u.`email`);'
      ].join('\n'),
      [
        '',
        'DELETE FROM `svc_auth_provider_links` WHERE `provider` = \'local\' AND `user_id` IN (SELECT u.`user_id` FROM `svc_auth_users` u JOIN `svc_auth_provider_links` l ON l.`user_id` = u.`user_id` AND l.`provider` = \'local\' JOIN `svc_auth_provider_links` o ON o.`provider` = \'local\' AND o.`subject` = u.`email` WHERE l.`subject` <> u.`email`);'
      ].join('\n'),
      [
        '',
        'UPDATE `svc_auth_provider_links` SET `subject` = u.`email`, `claims` = json_set(json_remove(`svc_auth_provider_links`.`claims`, \'$.email_verified\'), \'$.email\', u.`email`) FROM `svc_auth_users` u WHERE u.`user_id` = `svc_auth_provider_links`.`user_id` AND `provider` = \'local\' AND `subject` <> u.`email`;'
      ].join('\n')
    ]
  },
  {
    name: '0002_sessions',
    hash: 'f1a737f3b81192014e06b332c805bd9e785d679e860df81a21137114b62b8ef4',
    folderMillis: 1795450821608,
    sql: [
      [
        'CREATE TABLE `svc_auth_pending` (',
        '\t`hash` text PRIMARY KEY NOT NULL,',
        '\t`kind` text NOT NULL,',
        '\t`owner` text NOT NULL,',
        '\t`content` text NOT NULL,',
        '\t`attempts` integer NOT NULL,',
        '\t`started_at` integer NOT NULL',
        ');',
        ''
      ].join('\n'),
      [
        '',
        'CREATE INDEX `svc_auth_pending_owner` ON `svc_auth_pending` (`owner`);'
      ].join('\n'),
      [
        '',
        'CREATE TABLE `svc_auth_sessions` (',
        '\t`id_hash` text PRIMARY KEY NOT NULL,',
        '\t`user_id` text,',
        '\t`provider` text,',
        '\t`claims` text,',
        '\t`generation` integer NOT NULL,',
        '\t`proofs` text,',
        '\t`data` text,',
        '\t`user_agent` text,',
        '\t`created_at` integer NOT NULL,',
        '\t`seen_at` integer NOT NULL,',
        '\t`expires_at` integer NOT NULL,',
        '\t`ended_at` integer,',
        '\t`signed_out` integer NOT NULL,',
        '\t`replaced_by` text,',
        '\tFOREIGN KEY (`user_id`) REFERENCES `svc_auth_users`(`user_id`) ON UPDATE no action ON DELETE cascade',
        ');',
        ''
      ].join('\n'),
      [
        '',
        'CREATE INDEX `svc_auth_sessions_user` ON `svc_auth_sessions` (`user_id`);'
      ].join('\n')
    ]
  }
]
