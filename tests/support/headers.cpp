// An empty program, because the precompiled headers of all tests (lrpc_test_headers) must be compiled for some program.
int main() {}
