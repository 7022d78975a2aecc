"""The backend that is vLLM, with the real vLLM: `make test-vllm`."""
