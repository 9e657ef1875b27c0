/** From which metrics of a model server its load is read: ready-made for the common engines, or a host's own. */

/** `my_queue_depth`, `my_requests{state="waiting"}`, or a label's value. Of several the first counts that is there. */
export type MetricSource = string | { readonly metric: string; readonly valueLabel: string };
type OneOrMore<T> = T | readonly T[];

/** Metric by figure. Without a source, figures that every server must report read 0; others stay unknown. */
export interface MetricSources {
  readonly waitingQueueSize: OneOrMore<MetricSource>;
  readonly runningRequests?: OneOrMore<MetricSource> | undefined;
  /** 0…1. */
  readonly kvCacheUsage?: OneOrMore<MetricSource> | undefined;
  readonly activeDecodeBlocks?: OneOrMore<MetricSource> | undefined;
  /** Without a source: `kvCacheUsage` of `totalBlocks`. */
  readonly kvUsedBlocks?: OneOrMore<MetricSource> | undefined;
  readonly activePrefillTokens?: OneOrMore<MetricSource> | undefined;
  readonly totalBlocks?: OneOrMore<MetricSource> | undefined;
  readonly maxNumBatchedTokens?: OneOrMore<MetricSource> | undefined;
  /** A metric with the labels of vLLM's `lora_requests_info`, and the time of its last change as its value. */
  readonly loraAdapters?: string | undefined;
  /** The label of data-parallel ranks: counts are summed, `kvCacheUsage` is their mean; else the highest counts. */
  readonly rankLabel?: string | undefined;
}

export type MetricProfile = 'vllm' | 'sglang' | 'trtllm-serve' | 'triton' | 'dynamo';

/** In order of trial: Dynamo's workers pass the engine's on, which say more. Sources: llm-d-router; metrics pages. */
export const metricProfiles: Readonly<Record<MetricProfile, MetricSources>> = {
  vllm: {
    waitingQueueSize: 'vllm:num_requests_waiting',
    runningRequests: 'vllm:num_requests_running',
    kvCacheUsage: ['vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'],
    totalBlocks: { metric: 'vllm:cache_config_info', valueLabel: 'num_gpu_blocks' },
    loraAdapters: 'vllm:lora_requests_info',
    rankLabel: 'engine',
  },
  sglang: {
    waitingQueueSize: 'sglang:num_queue_reqs',
    runningRequests: 'sglang:num_running_reqs',
    kvCacheUsage: 'sglang:token_usage',
    totalBlocks: { metric: 'sglang:cache_config_info', valueLabel: 'num_pages' },
    rankLabel: 'dp_rank',
  },
  'trtllm-serve': {
    waitingQueueSize: 'trtllm_num_requests_waiting',
    runningRequests: 'trtllm_num_requests_running',
    kvCacheUsage: 'trtllm_kv_cache_utilization',
    totalBlocks: 'trtllm_kv_cache_max_blocks',
  },
  triton: {
    waitingQueueSize: 'nv_trt_llm_request_metrics{request_type="waiting"}',
    runningRequests: [
      'nv_trt_llm_request_metrics{request_type="scheduled"}',
      'nv_trt_llm_request_metrics{request_type="active"}',
    ],
    kvCacheUsage: 'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction"}',
    kvUsedBlocks: 'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used"}',
    totalBlocks: 'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max"}',
    rankLabel: 'model',
  },
  dynamo: {
    waitingQueueSize: ['dynamo_work_handler_queue_depth', 'dynamo_request_queue'],
    runningRequests: 'dynamo_component_inflight_requests{dynamo_endpoint="generate"}',
    kvCacheUsage: ['dynamo_component_gpu_cache_usage_percent', 'dynamo_component_kvstats_gpu_cache_usage_percent'],
    kvUsedBlocks: 'dynamo_component_kvstats_active_blocks',
    totalBlocks: ['dynamo_component_total_blocks', 'dynamo_component_kvstats_total_blocks'],
    rankLabel: 'dp_rank',
  },
};
