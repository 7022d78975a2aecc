"""The real vLLM, inside the gateway and as a server for the gateway and for jobs: `make test-vllm`."""
