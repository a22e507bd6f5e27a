// Written by `npm run migrations` from drizzle/sqlite.
import type { Migrations } from '../sql-tables.js'

/** The migrations of each part in their order. */
export const SQLITE_MIGRATIONS: Migrations = {
  users: [{
    name: '0000_tables-users',
    sql: [
      'CREATE TABLE `svc_auth_credentials` (\n\t`user_id` text PRIMARY KEY NOT NULL,\n\t`pw_hash` text NOT NULL,\n\tFOREIGN KEY (`user_id`) REFERENCES `svc_auth_users`(`user_id`) ON UPDATE no action ON DELETE cascade\n);',
      'CREATE TABLE `svc_auth_provider_links` (\n\t`provider` text NOT NULL,\n\t`subject` text NOT NULL,\n\t`user_id` text NOT NULL,\n\t`claims` text NOT NULL,\n\tPRIMARY KEY(`provider`, `subject`),\n\tFOREIGN KEY (`user_id`) REFERENCES `svc_auth_users`(`user_id`) ON UPDATE no action ON DELETE cascade\n);',
      'CREATE UNIQUE INDEX `svc_auth_provider_links_user_provider_unique` ON `svc_auth_provider_links` (`user_id`,`provider`);',
      'CREATE TABLE `svc_auth_users` (\n\t`user_id` text PRIMARY KEY NOT NULL,\n\t`email` text,\n\t`name` text,\n\t`claims` text NOT NULL,\n\t`extras` text NOT NULL\n);',
      'CREATE UNIQUE INDEX `svc_auth_users_email_unique` ON `svc_auth_users` (`email`);',
      'CREATE INDEX `svc_auth_users_domain` ON `svc_auth_users` (extras ->> \'$.email_domain\');',
      'CREATE INDEX `svc_auth_users_name` ON `svc_auth_users` (extras ->> \'$.name_key\');',
      'CREATE INDEX `svc_auth_users_created` ON `svc_auth_users` (extras ->> \'$.created_at\',`user_id`);',
      'CREATE INDEX `svc_auth_users_blocked` ON `svc_auth_users` (`user_id`) WHERE json_extract(extras, \'$.blocked\') is not null;'
    ]
  }],
  sessions: [{
    name: '0000_tables-sessions',
    sql: [
      'CREATE TABLE `svc_auth_factors` (\n\t`factor_id` text PRIMARY KEY NOT NULL,\n\t`user_id` text NOT NULL,\n\t`kind` text NOT NULL,\n\t`name` text,\n\t`secret` text,\n\t`data` text NOT NULL,\n\t`counter` integer NOT NULL,\n\t`created_at` integer NOT NULL,\n\t`used_at` integer,\n\tFOREIGN KEY (`user_id`) REFERENCES `svc_auth_users`(`user_id`) ON UPDATE no action ON DELETE cascade\n);',
      'CREATE INDEX `svc_auth_factors_user` ON `svc_auth_factors` (`user_id`);',
      'CREATE TABLE `svc_auth_pending` (\n\t`hash` text PRIMARY KEY NOT NULL,\n\t`kind` text NOT NULL,\n\t`owner` text NOT NULL,\n\t`content` text NOT NULL,\n\t`attempts` integer NOT NULL,\n\t`started_at` integer NOT NULL\n);',
      'CREATE INDEX `svc_auth_pending_owner` ON `svc_auth_pending` (`owner`);',
      'CREATE TABLE `svc_auth_sessions` (\n\t`id_hash` text PRIMARY KEY NOT NULL,\n\t`user_id` text,\n\t`provider` text,\n\t`claims` text,\n\t`generation` integer NOT NULL,\n\t`proofs` text,\n\t`data` text,\n\t`user_agent` text,\n\t`created_at` integer NOT NULL,\n\t`seen_at` integer NOT NULL,\n\t`expires_at` integer NOT NULL,\n\t`ended_at` integer,\n\t`signed_out` integer NOT NULL,\n\t`replaced_by` text,\n\t`shown_user_id` text,\n\t`provider_session` text,\n\t`provider_user` text,\n\tFOREIGN KEY (`user_id`) REFERENCES `svc_auth_users`(`user_id`) ON UPDATE no action ON DELETE cascade\n);',
      'CREATE INDEX `svc_auth_sessions_user` ON `svc_auth_sessions` (`user_id`);',
      'CREATE INDEX `svc_auth_sessions_shown` ON `svc_auth_sessions` (`shown_user_id`) WHERE shown_user_id is not null;',
      'CREATE INDEX `svc_auth_sessions_provider_session` ON `svc_auth_sessions` (`provider_session`) WHERE provider_session is not null;',
      'CREATE INDEX `svc_auth_sessions_provider_user` ON `svc_auth_sessions` (`provider_user`) WHERE provider_user is not null;'
    ]
  }],
  grants: [{
    name: '0000_tables-grants',
    sql: [
      'CREATE TABLE `svc_auth_grants` (\n\t`grant_id` text PRIMARY KEY NOT NULL,\n\t`user_id` text NOT NULL,\n\t`generation` integer NOT NULL,\n\t`client_id` text NOT NULL,\n\t`content` text NOT NULL,\n\t`version` integer NOT NULL,\n\t`created_at` integer NOT NULL,\n\t`used_at` integer NOT NULL,\n\t`ends_at` integer NOT NULL,\n\tFOREIGN KEY (`user_id`) REFERENCES `svc_auth_users`(`user_id`) ON UPDATE no action ON DELETE cascade\n);',
      'CREATE INDEX `svc_auth_grants_user` ON `svc_auth_grants` (`user_id`);',
      'CREATE TABLE `svc_auth_clients` (\n\t`client_id` text PRIMARY KEY NOT NULL,\n\t`content` text NOT NULL,\n\t`created_at` integer NOT NULL,\n\t`used_at` integer\n);'
    ]
  }],
  keys: [{
    name: '0000_tables-keys',
    sql: [
      'CREATE TABLE `svc_auth_keys` (\n\t`key_id` text PRIMARY KEY NOT NULL,\n\t`hash` text NOT NULL,\n\t`user_id` text,\n\t`owner` text,\n\t`name` text NOT NULL,\n\t`scopes` text NOT NULL,\n\t`generation` integer NOT NULL,\n\t`created_at` integer NOT NULL,\n\t`used_at` integer,\n\t`expires_at` integer,\n\tFOREIGN KEY (`user_id`) REFERENCES `svc_auth_users`(`user_id`) ON UPDATE no action ON DELETE cascade\n);',
      'CREATE INDEX `svc_auth_keys_user` ON `svc_auth_keys` (`user_id`);',
      'CREATE INDEX `svc_auth_keys_owner` ON `svc_auth_keys` (`owner`);'
    ]
  }],
  connections: [{
    name: '0000_tables-connections',
    sql: [
      'CREATE TABLE `svc_auth_connections` (\n\t`connection_id` text PRIMARY KEY NOT NULL,\n\t`issuer` text NOT NULL,\n\t`client_id` text NOT NULL,\n\t`content` text NOT NULL,\n\t`version` integer NOT NULL,\n\t`created_at` integer NOT NULL,\n\t`removed_at` integer\n);',
      'CREATE TABLE `svc_auth_domains` (\n\t`domain` text NOT NULL,\n\t`connection_id` text NOT NULL,\n\t`token` text NOT NULL,\n\t`proven_at` integer,\n\t`checked_at` integer,\n\t`missing_since` integer,\n\t`lapsed_at` integer,\n\tPRIMARY KEY(`domain`, `connection_id`),\n\tFOREIGN KEY (`connection_id`) REFERENCES `svc_auth_connections`(`connection_id`) ON UPDATE no action ON DELETE cascade\n);',
      'CREATE UNIQUE INDEX `svc_auth_domains_proven` ON `svc_auth_domains` (`domain`) WHERE proven_at is not null;',
      'CREATE INDEX `svc_auth_domains_connection` ON `svc_auth_domains` (`connection_id`);'
    ]
  }]
}
