// Names of the objects that clients meet. Answers, and inputs where they take the same object, refer to them in the
// OpenAPI document; typed clients have them as types.
import type { TSchema } from 'typebox';
import { AccessKey } from './resources/access-keys.ts';
import { Me } from './resources/account.ts';
import { AuditEntry } from './resources/audit-logs.ts';
import { Ban } from './resources/bans.ts';
import { Change, WaitingNode } from './resources/changes.ts';
import { ClientIpSettings } from './resources/client-ip.ts';
import { Cluster } from './resources/clusters.ts';
import { EnrollmentProgress, NewEnrollmentToken } from './resources/enrollment-tokens.ts';
import { IpList, IpListSummary, IpListUser } from './resources/ip-lists.ts';
import { NodeChannelCheck, NodeChannelSettings } from './resources/node-channel-settings.ts';
import { NodeGroup } from './resources/node-groups.ts';
import { Node, NodeBanStatus, NodeFailedEntry, NodeMetrics } from './resources/nodes.ts';
import { Overview } from './resources/overview.ts';
import { CcPolicy, SiteProtection } from './resources/protection.ts';
import { ProtectionSettings } from './resources/protection-settings.ts';
import { Region } from './resources/regions.ts';
import { Revision } from './resources/revisions.ts';
import { Incidents, SecurityEvent, SecurityState } from './resources/security.ts';
import { ServiceAccount, ServiceAccountKey } from './resources/service-accounts.ts';
import { Settings } from './resources/settings.ts';
import { Delivery, Launch } from './resources/site-delivery.ts';
import { ContentSettings, Origin, OriginInput, OriginSettings } from './resources/site-origins.ts';
import { Site, SiteChange } from './resources/sites.ts';
import { SystemStatus } from './resources/system.ts';
import { CcThresholds } from './scalars/cc-thresholds.ts';
import { Level } from './scalars/challenge.ts';

export const MODELS: Readonly<Record<string, TSchema>> = {
  AccessKey,
  AuditEntry,
  Ban,
  CcPolicy,
  CcThresholds,
  Change,
  ClientIpSettings,
  Cluster,
  ContentSettings,
  Delivery,
  EnrollmentProgress,
  Incidents,
  IpList,
  IpListSummary,
  IpListUser,
  Launch,
  Level,
  Me,
  NewEnrollmentToken,
  Node,
  NodeBanStatus,
  NodeChannelCheck,
  NodeChannelSettings,
  NodeFailedEntry,
  NodeGroup,
  NodeMetrics,
  Origin,
  OriginInput,
  OriginSettings,
  Overview,
  ProtectionSettings,
  Region,
  Revision,
  SecurityEvent,
  SecurityState,
  ServiceAccount,
  ServiceAccountKey,
  Settings,
  Site,
  SiteChange,
  SiteProtection,
  SystemStatus,
  WaitingNode,
};
