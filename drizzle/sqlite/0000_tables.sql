CREATE TABLE `svc_auth_credentials` (
	`user_id` text PRIMARY KEY NOT NULL,
	`pw_hash` text NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `svc_auth_users`(`user_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
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
CREATE TABLE `svc_auth_users` (
	`user_id` text PRIMARY KEY NOT NULL,
	`email` text,
	`name` text,
	`claims` text NOT NULL,
	`extras` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `svc_auth_users_email_unique` ON `svc_auth_users` (`email`);