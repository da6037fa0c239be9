//! The names of feature gates and admission plugins of Kubernetes (spec 84 appendices 1 and 2). Data.

use super::gates::SupportRange;

/// The last minor version of Kubernetes 1 that the tables know.
pub(super) const LAST_KNOWN_MINOR: u64 = 36;

/// Feature gates (spec 84, appendix 1).
#[rustfmt::skip]
pub(super) const FEATURE_GATES: &[SupportRange] = &[
    SupportRange { added: None, removed: Some(31), names:
        "APIPriorityAndFairness CSIMigrationRBD CSINodeExpandSecret CustomResourceValidationExpressions \
         InTreePluginAWSUnregister InTreePluginAzureDiskUnregister InTreePluginAzureFileUnregister \
         InTreePluginGCEUnregister InTreePluginOpenStackUnregister InTreePluginRBDUnregister \
         InTreePluginvSphereUnregister JobReadyPods ReadWriteOncePod ServiceNodePortStaticSubrange" },
    SupportRange { added: None, removed: Some(32), names:
        "CloudDualStackNodeIPs StableLoadBalancerNodeSet ValidatingAdmissionPolicy" },
    SupportRange { added: None, removed: Some(33), names:
        "APIListChunking AdmissionWebhookMatchConditions AggregatedDiscoveryEndpoint AppArmor CPUManager \
         DisableCloudProviders DisableKubeletCloudCredentialProviders EfficientWatchResumption \
         JobPodFailurePolicy PDBUnhealthyPodEvictionPolicy RemainingItemCount VolumeCapacityPriority \
         WatchBookmark" },
    SupportRange { added: None, removed: Some(34), names:
        "ElasticIndexedJob PodDisruptionConditions StatefulSetStartOrdinal" },
    SupportRange { added: None, removed: Some(35), names:
        "ComponentSLIs" },
    SupportRange { added: None, removed: Some(36), names:
        "CSIMigrationPortworx HonorPVReclaimPolicy InTreePluginPortworxUnregister TopologyAwareHints \
         WatchFromStorageWithoutResourceVersion" },
    SupportRange { added: None, removed: None, names:
        "APIResponseCompression APIServerIdentity APIServerTracing AnyVolumeDataSource \
         CPUManagerPolicyAlphaOptions CPUManagerPolicyBetaOptions CPUManagerPolicyOptions CSIVolumeHealth \
         CloudControllerManagerWebhook ClusterTrustBundle ContainerCheckpoint ContextualLogging \
         CrossNamespaceVolumeDataSource CustomCPUCFSQuotaPeriod DynamicResourceAllocation EventedPLEG \
         ExecProbeTimeout GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority HPAScaleToZero \
         KubeletInUserNamespace KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletTracing \
         LocalStorageCapacityIsolationFSQuotaMonitoring LogarithmicScaleDown MatchLabelKeysInPodTopologySpread \
         MaxUnavailableStatefulSet MemoryQoS MultiCIDRServiceAllocator NodeInclusionPolicyInPodTopologySpread \
         NodeLogQuery NodeSwap OpenAPIEnums PodAndContainerStatsFromCRI PodDeletionCost PodSchedulingReadiness \
         ProcMountType QOSReserved RotateKubeletServerCertificate SELinuxMountReadWriteOncePod StorageVersionAPI \
         StorageVersionHash TopologyManagerPolicyAlphaOptions TopologyManagerPolicyBetaOptions \
         TopologyManagerPolicyOptions UnauthenticatedHTTP2DOSMitigation WatchList WinDSR WinOverlay \
         WindowsHostNetwork" },
    SupportRange { added: Some(14), removed: Some(32), names:
        "ServerSideApply" },
    SupportRange { added: Some(17), removed: None, names:
        "AllAlpha AllBeta" },
    SupportRange { added: Some(20), removed: Some(32), names:
        "HPAContainerMetrics" },
    SupportRange { added: Some(20), removed: Some(35), names:
        "SizeMemoryBackedVolumes" },
    SupportRange { added: Some(21), removed: Some(36), names:
        "MemoryManager" },
    SupportRange { added: Some(23), removed: Some(32), names:
        "ServerSideFieldValidation" },
    SupportRange { added: Some(23), removed: Some(35), names:
        "StatefulSetAutoDeletePVC" },
    SupportRange { added: Some(24), removed: Some(32), names:
        "MinDomainsInPodTopologySpread NodeOutOfServiceVolumeDetach" },
    SupportRange { added: Some(25), removed: Some(32), names:
        "KMSv2 NewVolumeManagerReconstruction" },
    SupportRange { added: Some(26), removed: Some(31), names:
        "ConsistentHTTPGetHandlers" },
    SupportRange { added: Some(26), removed: Some(32), names:
        "DRAControlPlaneController" },
    SupportRange { added: Some(27), removed: None, names:
        "InPlacePodVerticalScaling" },
    SupportRange { added: Some(28), removed: Some(31), names:
        "DefaultHostNetworkHostPortsInPodTemplates SkipReadOnlyValidationGCE" },
    SupportRange { added: Some(28), removed: Some(32), names:
        "KMSv2KDF LegacyServiceAccountTokenCleanUp PodHostIPs" },
    SupportRange { added: Some(28), removed: Some(33), names:
        "KubeProxyDrainingTerminatingNodes PersistentVolumeLastPhaseTransitionTime" },
    SupportRange { added: Some(28), removed: Some(34), names:
        "DevicePluginCDIDevices" },
    SupportRange { added: Some(28), removed: Some(35), names:
        "CronJobsScheduledAnnotation PodIndexLabel" },
    SupportRange { added: Some(28), removed: None, names:
        "CRDValidationRatcheting ConsistentListFromCache JobBackoffLimitPerIndex JobPodReplacementPolicy KMSv1 \
         KubeletCgroupDriverFromCRI PodReadyToStartContainersCondition RecoverVolumeExpansionFailure \
         SchedulerQueueingHints SeparateCacheWatchRPC SidecarContainers UnknownVersionInteroperabilityProxy \
         UserNamespacesSupport" },
    SupportRange { added: Some(29), removed: Some(32), names:
        "ZeroLimitedNominalConcurrencyShares" },
    SupportRange { added: Some(29), removed: Some(35), names:
        "AllowServiceLBStatusOnNonLB LoadBalancerIPMode UserNamespacesPodSecurityStandards" },
    SupportRange { added: Some(29), removed: Some(36), names:
        "StructuredAuthorizationConfiguration" },
    SupportRange { added: Some(29), removed: None, names:
        "ClusterTrustBundleProjection DisableNodeKubeProxyVersion ImageMaximumGCAge KubeletSeparateDiskGC \
         MatchLabelKeysInPodAffinity NFTablesProxyMode PodLifecycleSleepAction RuntimeClassInImageCriApi \
         SeparateTaintEvictionController ServiceAccountTokenJTI ServiceAccountTokenNodeBinding \
         ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo \
         StructuredAuthenticationConfiguration TranslateStreamCloseWebsocketRequests VolumeAttributesClass" },
    SupportRange { added: Some(30), removed: Some(33), names:
        "AppArmorFields" },
    SupportRange { added: Some(30), removed: Some(35), names:
        "StrictCostEnforcementForVAP StrictCostEnforcementForWebhooks" },
    SupportRange { added: Some(30), removed: Some(36), names:
        "ServiceTrafficDistribution" },
    SupportRange { added: Some(30), removed: None, names:
        "APIServingWithRoutine CustomResourceFieldSelectors InformerResourceVersion JobManagedBy JobSuccessPolicy \
         MutatingAdmissionPolicy PortForwardWebsockets RecursiveReadOnlyMounts \
         RelaxedEnvironmentVariableValidation RetryGenerateName SELinuxMount StorageNamespaceIndex \
         StorageVersionMigrator WatchListClient" },
    SupportRange { added: Some(31), removed: None, names:
        "AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests AnonymousAuthConfigurableEndpoints \
         AuthorizeNodeWithSelectors AuthorizeWithSelectors ConcurrentWatchObjectDecode CoordinatedLeaderElection \
         DisableAllocatorDualWrite ImageVolume ReloadKubeletServerCertificateFile \
         ResilientWatchCacheInitialization ResourceHealthStatus SupplementalGroupsPolicy \
         WatchCacheInitializationPostStartHook" },
    SupportRange { added: Some(32), removed: Some(36), names:
        "InPlacePodVerticalScalingAllocatedStatus" },
    SupportRange { added: Some(32), removed: None, names:
        "AllowOverwriteTerminationGracePeriodSeconds AllowUnsafeMalformedObjectDeletion BtreeWatchCache \
         CBORServingAndStorage ComponentFlagz ComponentStatusz DRAAdminAccess DRAResourceClaimDeviceStatus \
         ExternalServiceAccountTokenSigner InPlacePodVerticalScalingExclusiveCPUs KubeletCrashLoopBackOffMax \
         KubeletFineGrainedAuthz KubeletRegistrationGetOnExistsOnly PodLevelResources \
         PodLifecycleSleepActionAllowZero PodLogsQuerySplitStreams PreferAlignCpusByUncoreCache \
         RelaxedDNSSearchValidation RemoteRequestHeaderUID SELinuxChangePolicy SchedulerAsyncPreemption \
         ServiceAccountNodeAudienceRestriction SystemdWatchdog WindowsCPUAndMemoryAffinity \
         WindowsGracefulNodeShutdown" },
    SupportRange { added: Some(33), removed: Some(34), names:
        "LegacySidecarContainers" },
    SupportRange { added: Some(33), removed: None, names:
        "AggregatedDiscoveryRemoveBetaType AllowParsingUserUIDFromCertAuth ContainerStopSignals DRADeviceTaints \
         DRAPartitionableDevices DRAPrioritizedList DeclarativeValidation DeclarativeValidationTakeover \
         DeploymentReplicaSetTerminatingReplicas DisableCPUQuotaWithExclusiveCPUs GitRepoVolumeDriver \
         HPAConfigurableTolerance KubeletEnsureSecretPulledImages KubeletPSI \
         KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot MutableCSINodeAllocatableCount \
         OrderedNamespaceDeletion PodObservedGenerationTracking PodTopologyLabelsAdmission \
         PreferSameTrafficDistribution ReduceDefaultCrashLoopBackOffDecay SchedulerPopFromBackoffQ \
         StorageCapacityScoring StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf \
         StrictIPCIDRValidation" },
    SupportRange { added: Some(34), removed: Some(35), names:
        "ProbeHostPodSecurityStandards" },
    SupportRange { added: Some(34), removed: None, names:
        "ClearingNominatedNodeNameAfterBinding ContainerRestartRules DRAConsumableCapacity \
         DRADeviceBindingConditions DRAExtendedResource DRASchedulerFilterTimeout DetectCacheInconsistency \
         EnvFiles HostnameOverride InPlacePodVerticalScalingExclusiveMemory KubeletPodResourcesListUseActivePods \
         MatchLabelKeysInPodTopologySpreadSelectorMerge NominatedNodeNameForExpectation PodCertificateRequest \
         PreventStaticPodAPIReferences RelaxedServiceNameValidation SchedulerAsyncAPICalls \
         SizeBasedListCostEstimate StructuredAuthenticationConfigurationEgressSelector \
         TokenRequestServiceAccountUIDValidation" },
    SupportRange { added: Some(35), removed: None, names:
        "AuthorizePodWebsocketUpgradeCreatePermission CRDObservedGenerationTracking CSIServiceAccountTokenSecrets \
         ChangeContainerStatusOnKubeletRestart CloudControllerManagerWatchBasedRoutesReconciliation \
         ConstrainedImpersonation DRADeviceTaintRules GangScheduling GenericWorkload \
         InPlacePodLevelResourcesVerticalScaling MutablePVNodeAffinity MutablePodResourcesForSuspendedJobs \
         MutableSchedulingDirectivesForSuspendedJobs NodeDeclaredFeatures OpportunisticBatching \
         RestartAllContainersOnContainerExits StructuredAuthenticationConfigurationJWKSMetrics \
         TaintTolerationComparisonOperators UserNamespacesHostNetworkSupport VolumeLimitScaling" },
    SupportRange { added: Some(36), removed: None, names:
        "AllowServiceExternalIPs CRIListStreaming ControllerManagerReleaseLeaderElectionLockOnExit \
         DRAListTypeAttributes DRANodeAllocatableResources DRAResourceClaimGranularStatusAuthorization \
         DRAResourcePoolStatus DRAWorkloadResourceClaims DeclarativeValidationBeta ExtendWebSocketsToKubelet \
         ImageVolumeWithDigest InPlacePodVerticalScalingInitContainers ManifestBasedAdmissionControlConfig \
         NativeHistograms PLEGOnDemandRelist PersistentVolumeClaimUnusedSinceTime PodLevelResourceManagers \
         PodsAPI ReloadKubeletClientCAFile ResourceHealthStatusMessage ServiceCIDRStatusFieldWiping \
         ShardedListAndWatch StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob \
         StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet \
         TopologyAwareWorkloadScheduling WorkloadAwarePreemption WorkloadWithJob" },
];

/// Admission plugins (spec 84, appendix 2).
#[rustfmt::skip]
pub(super) const ADMISSION_PLUGINS: &[SupportRange] = &[
    SupportRange { added: None, removed: Some(31), names:
        "PersistentVolumeLabel" },
    SupportRange { added: None, removed: None, names:
        "AlwaysAdmit AlwaysDeny AlwaysPullImages CertificateApproval CertificateSigning \
         CertificateSubjectRestriction ClusterTrustBundleAttest DefaultIngressClass DefaultStorageClass \
         DefaultTolerationSeconds DenyServiceExternalIPs EventRateLimit ExtendedResourceToleration \
         ImagePolicyWebhook LimitPodHardAntiAffinityTopology LimitRanger MutatingAdmissionWebhook \
         NamespaceAutoProvision NamespaceExists NamespaceLifecycle NodeRestriction \
         OwnerReferencesPermissionEnforcement PersistentVolumeClaimResize PodNodeSelector PodSecurity \
         PodTolerationRestriction Priority ResourceQuota RuntimeClass ServiceAccount StorageObjectInUseProtection \
         TaintNodesByCondition ValidatingAdmissionPolicy ValidatingAdmissionWebhook" },
    SupportRange { added: Some(32), removed: None, names:
        "MutatingAdmissionPolicy" },
    SupportRange { added: Some(33), removed: None, names:
        "PodTopologyLabels" },
    SupportRange { added: Some(35), removed: None, names:
        "NodeDeclaredFeatureValidator" },
    SupportRange { added: Some(36), removed: None, names:
        "JobValidation PodGroupProtection PodGroupWorkloadExists PodResizeValidator" },
];
