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
    name: '0001_user_indexes',
    hash: '40ae9699b3b2622ad8c3e86a1a2871c557d6b77f1c4d7b145448766198053b22',
    folderMillis: 1795375228091,
    sql: [
      [
        'CREATE INDEX `svc_auth_users_blocked` ON `svc_auth_users` (`user_id`) WHERE json_extract(extras, \'$.blocked\') is not null;'
      ].join('\n')
    ]
  },
  {
    name: '0002_sessions',
    hash: '4c829cf51ac591579b1367a3920c525e6d5da4a73de61886f3a062c73d097b69',
    folderMillis: 1795400481877,
    sql: [
      [
        'CREATE TABLE `svc_auth_pending` (',
        '\t`state_hash` text PRIMARY KEY NOT NULL,',
        '\t`session_hash` text NOT NULL,',
        '\t`content` text NOT NULL,',
        '\t`started_at` integer NOT NULL',
        ');',
        ''
      ].join('\n'),
      [
        '',
        'CREATE INDEX `svc_auth_pending_session` ON `svc_auth_pending` (`session_hash`);'
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
