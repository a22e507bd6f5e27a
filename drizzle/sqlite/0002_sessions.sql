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
	FOREIGN KEY (`user_id`) REFERENCES `svc_auth_users`(`user_id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `svc_auth_sessions_user` ON `svc_auth_sessions` (`user_id`);