"""The bundled model on other engines, each the real one: vLLM inside the gateway and as a server for it and for jobs
(`make test-vllm`), and llama.cpp's server (`make test-llama`)."""
