/**
 * Expositions as the engines write them, cut down to some families but with their shapes: comments, histograms, labels,
 * notations.
 */

interface Load {
  waiting?: number;
  running?: number;
  kv?: number;
}

const process = `# HELP process_virtual_memory_bytes Virtual memory size in bytes.
# TYPE process_virtual_memory_bytes gauge
process_virtual_memory_bytes 1.1742892032e+10
# HELP python_info Python platform information
# TYPE python_info gauge
python_info{implementation="CPython",major="3",minor="12",patchlevel="9",version="3.12.9"} 1.0
`;

function histogram(name: string, labels: string): string {
  const bounds = ['0.001', '0.005', '0.01', '0.1', '0.5', '1.0', '2.5', '10.0', '+Inf'];
  const buckets = bounds.map((le, index) => `${name}_bucket{${labels},le="${le}"} ${index}.0\n`).join('');
  return `# HELP ${name} Histogram of ${name}.\n# TYPE ${name} histogram\n${buckets}${name}_count{${labels}} 8.0\n${name}_sum{${labels}} 7.25\n`;
}

/** vLLM 0.10 and later, one entry for each data-parallel engine. */
export function vllm(...engines: Load[]): string {
  const all = engines.length > 0 ? engines : [{}];
  const series = (name: string, help: string, value: (load: Load) => string): string =>
    `# HELP ${name} ${help}\n# TYPE ${name} gauge\n` +
    all
      .map(
        (load, engine) => `${name}{engine="${engine}",model_name="meta-llama/Llama-3.1-8B-Instruct"} ${value(load)}\n`,
      )
      .join('');
  return (
    process +
    series('vllm:num_requests_running', 'Number of requests in model execution batches.', ({ running = 0 }) =>
      running.toFixed(1),
    ) +
    series('vllm:num_requests_waiting', 'Number of requests waiting to be processed.', ({ waiting = 0 }) =>
      waiting.toFixed(1),
    ) +
    series('vllm:num_requests_waiting_by_reason', 'The same by reason.', () => '99.0') +
    series('vllm:kv_cache_usage_perc', 'KV-cache usage. 1 means 100 percent usage.', ({ kv = 0 }) => String(kv)) +
    '# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig\n# TYPE vllm:cache_config_info gauge\n' +
    all
      .map(
        (_, engine) =>
          `vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="${engine}",gpu_memory_utilization="0.9",num_cpu_blocks="None",num_gpu_blocks="1000"} 1.0\n`,
      )
      .join('') +
    '# HELP vllm:lora_requests_info Running stats on lora requests.\n# TYPE vllm:lora_requests_info gauge\n' +
    'vllm:lora_requests_info{max_lora="4",running_lora_adapters="old",waiting_lora_adapters=""} 1.7886264577368872e+09\n' +
    'vllm:lora_requests_info{max_lora="4",running_lora_adapters="sql, chat",waiting_lora_adapters="tools"} 1.7886264600000000e+09\n' +
    'vllm:lora_requests_info{max_lora="4",running_lora_adapters="",waiting_lora_adapters=""} 1.7886264545318772e+09\n' +
    histogram('vllm:time_to_first_token_seconds', 'engine="0",model_name="meta-llama/Llama-3.1-8B-Instruct"')
  );
}

/** vLLM 0.6: no engines, the older name of the cache's usage. */
export function oldVllm({ waiting = 0, running = 0, kv = 0 }: Load): string {
  return `# HELP vllm:lora_requests_info Running stats on lora requests.
# TYPE vllm:lora_requests_info gauge
vllm:lora_requests_info{max_lora="0",running_lora_adapters="",waiting_lora_adapters=""} 1.0
# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",cache_dtype="fp8",num_gpu_blocks="None",num_gpu_blocks_override="None"} 1.0
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="m"} ${running}
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="m"} ${waiting}
# TYPE vllm:gpu_cache_usage_perc gauge
vllm:gpu_cache_usage_perc{model_name="m"} ${kv}
`;
}

/** SGLang with its scheduler's labels; a series for each priority beside the sum. */
export function sglang({ waiting = 0, running = 0, kv = 0 }: Load): string {
  const labels = 'model_name="qwen",tp_rank="0",pp_rank="0",dp_rank="0"';
  return `# HELP sglang:num_running_reqs The number of running requests.
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{${labels}} ${running}.0
# HELP sglang:num_queue_reqs The number of requests in the waiting queue.
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{${labels},priority=""} ${waiting}.0
sglang:num_queue_reqs{${labels},priority="1"} ${waiting}.0
# HELP sglang:token_usage The token usage.
# TYPE sglang:token_usage gauge
sglang:token_usage{${labels}} ${kv}
# HELP sglang:cache_config_info Cache configuration.
# TYPE sglang:cache_config_info gauge
sglang:cache_config_info{page_size="1",num_pages="2000"} 1.0
${histogram('sglang:queue_time_seconds', labels)}`;
}

/** TensorRT-LLM behind Triton. */
export function triton({ waiting = 0, running = 0, kv = 0 }: Load): string {
  const labels = 'model="tensorrt_llm",version="1"';
  const requests = { waiting, context: 1, scheduled: running, max: 512, active: running + waiting };
  const blocks = { tokens_per: 64, used: kv * 500, free: 500 - kv * 500, max: 500, fraction: kv, reused: 0 };
  return `# HELP nv_inference_pending_request_count Instantaneous number of pending requests awaiting execution per-model.
# TYPE nv_inference_pending_request_count gauge
nv_inference_pending_request_count{${labels}} 77
# HELP nv_trt_llm_request_metrics TRT LLM request metrics
# TYPE nv_trt_llm_request_metrics gauge
${Object.entries(requests)
  .map(
    ([type, count]) => `nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="${type}",version="1"} ${count}`,
  )
  .join('\n')}
# HELP nv_trt_llm_kv_cache_block_metrics TRT LLM KV cache block metrics
# TYPE nv_trt_llm_kv_cache_block_metrics gauge
${Object.entries(blocks)
  .map(
    ([type, count]) =>
      `nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="${type}",model="tensorrt_llm",version="1"} ${count}`,
  )
  .join('\n')}
`;
}

/** trtllm-serve. */
export function trtllmServe({ waiting = 0, running = 0, kv = 0 }: Load): string {
  return `# TYPE trtllm_kv_cache_utilization gauge
trtllm_kv_cache_utilization{engine_type="undefined",model_name="undefined"} ${kv}
# TYPE trtllm_kv_cache_max_blocks gauge
trtllm_kv_cache_max_blocks{engine_type="undefined",model_name="undefined"} 400
# TYPE trtllm_num_requests_waiting gauge
trtllm_num_requests_waiting{engine_type="undefined",model_name="undefined"} ${waiting}
# TYPE trtllm_num_requests_running gauge
trtllm_num_requests_running{engine_type="undefined",model_name="undefined"} ${running}
`;
}

/** A worker of Dynamo, without what it passes on from its engine. */
export function dynamo({ waiting = 0, running = 0, kv = 0 }: Load): string {
  const labels = 'dynamo_component="backend",dynamo_namespace="default"';
  return `# HELP dynamo_component_inflight_requests Number of requests currently being processed by work handler
# TYPE dynamo_component_inflight_requests gauge
dynamo_component_inflight_requests{dynamo_endpoint="clear_kv_blocks",${labels}} 40
dynamo_component_inflight_requests{dynamo_endpoint="generate",${labels}} ${running}
# TYPE dynamo_work_handler_queue_depth gauge
dynamo_work_handler_queue_depth ${waiting}
# TYPE dynamo_component_gpu_cache_usage_percent gauge
dynamo_component_gpu_cache_usage_percent{dp_rank="0",${labels}} ${kv}
dynamo_component_gpu_cache_usage_percent{dp_rank="1",${labels}} ${kv}
# TYPE dynamo_component_total_blocks gauge
dynamo_component_total_blocks{dp_rank="0",${labels}} 300
dynamo_component_total_blocks{dp_rank="1",${labels}} 300
`;
}
