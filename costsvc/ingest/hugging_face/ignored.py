"""Fields that change neither the size of a model nor its cache: how it is trained, sampled, rotated, scaled or run."""

import re
from typing import Final

# Names that hold one of these words may decide a shape, so only those listed by name below are ignored.
_MAY_DECIDE: Final = re.compile(
    r"(?:^|_)(?:size|sizes|dim|dims|head|heads|layer|layers|expert|experts|rank|lora|window|group|groups|width|depth|"
    r"block|blocks|mtp|nextn|conv|state|chunk|latent|bias|moe|mla|mlp|ffn|attn|attention|kv|cla|share|shared|vocab|"
    r"tie|tied|embed|embeddings?|config|configs|pattern|ratio|ratios|multi|hybrid|sparse|index|altup|laurel)(?:_|$)"
)
_PATTERNS: Final = re.compile(
    r"^(?:.*_token_ids?|.*_token_index|.*_tokens?_id|.*dropout.*|.*_pdrop|.*drop_prob|(?:\w+_)?rope_.*|"
    r".*rotary.*|mrope.*|.*_eps|.*epsilon|eps|init_.*|initializer.*|.*initializer_range|.*init_std|hidden_act.*|"
    r"activation.*|.*_act|.*_act_fn|.*_scale|.*scaling.*|scale_.*|.*multiplier|.*softcap.*|.*softcapping|"
    r"router_.*|.*aux_loss.*|.*_loss.*|z_loss.*|aux_.*|time_step_.*|swiglu_.*|.*attn_implementation.*|"
    r"torch_dtype|dtype|_.*|max_length|min_length|transformers_version|.*_placeholder|output_.*|problem_type)$"
)
_NAMES: Final = frozenset(
    name
    for names in (
        # What files and frameworks say of themselves.
        """
        architectures attn_implementation auto_map bf16 cache_implementation chunk_size_feed_forward
        dtype finetuning_task fp16 fp32 gradient_checkpointing id2label init_device is_causal
        is_decoder label2id license model_type name onnx_safe problem_type pruned_heads return_dict
        return_dict_in_generate rotary_dim rotary_pct softmax_scale task_specific_params
        tf_legacy_loss tokenizer_class torch_dtype torchscript transformers_js_config
        trust_remote_code use_bfloat16 use_cache use_return_dict verbose
        """,
        # Sampling, as old files repeat it.
        """
        bad_words_ids begin_suppress_tokens diversity_penalty do_sample early_stopping
        encoder_no_repeat_ngram_size exponential_decay_length_penalty forced_bos_token_id
        forced_eos_token_id length_penalty no_repeat_ngram_size num_beam_groups num_beams
        num_return_sequences prefix remove_invalid_values repetition_penalty suppress_tokens
        temperature top_k top_p typical_p
        """,
        # Positions and scores: they turn and weigh vectors, and add none.
        """
        alibi_bias_max apply_query_key_layer_scaling attention_bias_value attention_dropout
        attention_dropout_prob attention_multiplier attention_probs_dropout_prob
        attention_softmax_in_fp32 attn_dropout_prob attn_logit_softcapping attn_pdrop attn_scale
        bias_dropout_fusion clip_qkv dim_model_base emb_dropout_prob emb_pdrop embd_pdrop
        embed_dropout embedding_multiplier ffn_act_fn fp32_residual_connection
        full_attn_alpha_factor full_attn_beta_factor hidden_dropout_prob initial_context_length
        layer_norm_eps layer_norm_epsilon layernorm_epsilon layernorm_full_attention_alpha
        layernorm_full_attention_beta layernorm_linear_attention_alpha
        layernorm_linear_attention_beta layernorm_mlp_alpha layernorm_mlp_beta
        layernorm_num_groups_eps linear_attn_alpha_factor linear_attn_beta_factor logit_scale
        max_position_embeddings max_sequence_length max_tokenizer_truncation mlp_alpha_factor
        mlp_beta_factor mlp_hidden_act model_max_length mup_base_width n_ctx no_rope_layer_interval
        no_rope_layers nope_layer_interval original_max_position_embeddings original_rope
        partial_rotary_factor position_embedding_type query_pre_attn_scalar reorder_and_upcast_attn
        residual_in_fp32 residual_multiplier rope_interleave rope_parameters rope_scaling rope_theta
        scale_attention_softmax_in_fp32 scale_attn_by_inverse_layer_idx scale_attn_weights
        scale_depth scale_emb seq_length
        """,
        # How experts are chosen and trained.
        """
        ep_size expert_selection_fn input_jitter_noise moe_jitter_eps moe_loss_weight moe_norm_min
        moe_normalize_expert_weights moe_renormalize moe_router_activation_func moe_router_dtype
        moe_router_scaling_factor moe_router_topk_scaling_factor moe_router_use_sigmoid
        moe_z_loss_coef multi_gate n_group norm_topk_prob num_expert_group output_router_logits
        routed_scaling_factor score_function scoring_func seq_aux topk_group topk_method
        use_grouped_topk
        """,
        # Training in parallel, and kernels.
        """
        embedding_initializer_range fuse_cross_entropy fuse_norm fuse_swiglu lm_head logits_to_keep
        num_logits_to_keep pretraining_tp rescale_prenorm_residual rm_head use_associative_scan
        use_fused_rms_norm use_mambapy use_rmsnorm use_unified_vision_chunk z_loss_coefficient
        z_loss_weight
        """,
    )
    for name in names.split()
)
# What a model of several media states beside its text: markers in the prompt and sizes of its pictures.
_OF_MEDIA: Final = re.compile(
    r"^(?:image_.*|video_.*|vision_(?:start|end|token|feature|soft).*|audio_(?:token|start|end).*|boi_.*|eoi_.*|boa_.*|"
    r"eoa_.*|media_.*|mm_tokens_per_image|ignore_index|tile_tag|global_view_pos|candidate_resolutions|"
    r"process_image_mode|img_token_compression_config|num_reward_heads|language_model_only|projector_hidden_act|"
    r"multimodal_projector_bias|projector_hidden_size|spatial_merge_size)$"
)


def changes_nothing(name: str) -> bool:
    """Whether a field of a text decoder changes neither its size nor its cache."""
    return (
        name in _NAMES
        or name.startswith("_")
        or (bool(_PATTERNS.match(name)) and not _MAY_DECIDE.search(name))
    )


def is_of_other_media(name: str) -> bool:
    """Whether a field beside the text's section is about pictures or sound alone."""
    return changes_nothing(name) or bool(_OF_MEDIA.match(name))


def may_decide(name: str) -> bool:
    """Whether a name sounds like a shape."""
    return bool(_MAY_DECIDE.search(name))
