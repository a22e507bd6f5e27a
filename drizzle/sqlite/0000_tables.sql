CREATE TABLE `svc_auth_credentials` (
	`user_id` text PRIMARY KEY NOT NULL,
	`pw_hash` text NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `svc_auth_users`(`user_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `svc_auth_factors` (
	`factor_id` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`kind` text NOT NULL,
	`name` text,
	`secret` text,
	`data` text NOT NULL,
	`counter` integer NOT NULL,
	`created_at` integer NOT NULL,
	`used_at` integer,
	FOREIGN KEY (`user_id`) REFERENCES `svc_auth_users`(`user_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `svc_auth_factors_user` ON `svc_auth_factors` (`user_id`);--> statement-breakpoint
CREATE TABLE `svc_auth_pending` (
	`hash` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`owner` text NOT NULL,
	`content` text NOT NULL,
	`attempts` integer NOT NULL,
	`started_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `svc_auth_pending_owner` ON `svc_auth_pending` (`owner`);--> statement-breakpoint
CREATE TABLE `svc_auth_provider_links` (
	`provider` text NOT NULL,
	`subject` text NOT NULL,
	`user_id` text NOT NULL,
	`claims` text NOT NULL,
	PRIMARY KEY(`provider`, `subject`),
	FOREIGN KEY (`user_id`) REFERENCES `svc_auth_users`(`user_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `svc_auth_provider_links_user_provider_unique` ON `svc_auth_provider_links` (`user_id`,`provider`);--> statement-breakpoint
CREATE TABLE `svc_auth_sessions` (
	`id_hash` text PRIMARY KEY NOT NULL,
	`user_id` text,
	`provider` text,
	`claims` text,
	`generation` integer NOT NULL,
	`proofs` text,
	`data` text,
	`user_agent` text,
	`created_at` integer NOT NULL,
	`seen_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`ended_at` integer,
	`signed_out` integer NOT NULL,
	`replaced_by` text,
	`shown_user_id` text,
	`provider_session` text,
	`provider_user` text,
	FOREIGN KEY (`user_id`) REFERENCES `svc_auth_users`(`user_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `svc_auth_sessions_user` ON `svc_auth_sessions` (`user_id`);--> statement-breakpoint
CREATE INDEX `svc_auth_sessions_shown` ON `svc_auth_sessions` (`shown_user_id`) WHERE shown_user_id is not null;--> statement-breakpoint
CREATE INDEX `svc_auth_sessions_provider_session` ON `svc_auth_sessions` (`provider_session`) WHERE provider_session is not null;--> statement-breakpoint
CREATE INDEX `svc_auth_sessions_provider_user` ON `svc_auth_sessions` (`provider_user`) WHERE provider_user is not null;--> statement-breakpoint
CREATE TABLE `svc_auth_users` (
	`user_id` text PRIMARY KEY NOT NULL,
	`email` text,
	`name` text,
	`claims` text NOT NULL,
	`extras` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `svc_auth_users_email_unique` ON `svc_auth_users` (`email`);--> statement-breakpoint
CREATE INDEX `svc_auth_users_domain` ON `svc_auth_users` (extras ->> '$.email_domain');--> statement-breakpoint
CREATE INDEX `svc_auth_users_name` ON `svc_auth_users` (extras ->> '$.name_key');--> statement-breakpoint
CREATE INDEX `svc_auth_users_created` ON `svc_auth_users` (extras ->> '$.created_at',`user_id`);--> statement-breakpoint
CREATE INDEX `svc_auth_users_blocked` ON `svc_auth_users` (`user_id`) WHERE json_extract(extras, '$.blocked') is not null;--> statement-breakpoint
CREATE TABLE `svc_auth_grants` (
	`grant_id` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`generation` integer NOT NULL,
	`client_id` text NOT NULL,
	`content` text NOT NULL,
	`version` integer NOT NULL,
	`created_at` integer NOT NULL,
	`used_at` integer NOT NULL,
	`ends_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `svc_auth_users`(`user_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `svc_auth_grants_user` ON `svc_auth_grants` (`user_id`);--> statement-breakpoint
CREATE TABLE `svc_auth_clients` (
	`client_id` text PRIMARY KEY NOT NULL,
	`content` text NOT NULL,
	`created_at` integer NOT NULL,
	`used_at` integer
);
--> statement-breakpoint
CREATE TABLE `svc_auth_keys` (
	`key_id` text PRIMARY KEY NOT NULL,
	`hash` text NOT NULL,
	`user_id` text,
	`owner` text,
	`name` text NOT NULL,
	`scopes` text NOT NULL,
	`generation` integer NOT NULL,
	`created_at` integer NOT NULL,
	`used_at` integer,
	`expires_at` integer,
	FOREIGN KEY (`user_id`) REFERENCES `svc_auth_users`(`user_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `svc_auth_keys_user` ON `svc_auth_keys` (`user_id`);--> statement-breakpoint
CREATE INDEX `svc_auth_keys_owner` ON `svc_auth_keys` (`owner`);--> statement-breakpoint
CREATE TABLE `svc_auth_connections` (
	`connection_id` text PRIMARY KEY NOT NULL,
	`issuer` text NOT NULL,
	`client_id` text NOT NULL,
	`content` text NOT NULL,
	`version` integer NOT NULL,
	`created_at` integer NOT NULL,
	`removed_at` integer
);
--> statement-breakpoint
CREATE TABLE `svc_auth_domains` (
	`domain` text NOT NULL,
	`connection_id` text NOT NULL,
	`token` text NOT NULL,
	`proven_at` integer,
	`checked_at` integer,
	`missing_since` integer,
	`lapsed_at` integer,
	PRIMARY KEY(`domain`, `connection_id`),
	FOREIGN KEY (`connection_id`) REFERENCES `svc_auth_connections`(`connection_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `svc_auth_domains_proven` ON `svc_auth_domains` (`domain`) WHERE proven_at is not null;--> statement-breakpoint
CREATE INDEX `svc_auth_domains_connection` ON `svc_auth_domains` (`connection_id`);