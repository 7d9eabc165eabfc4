// A command as a user runs it: what it prints, and how it ends.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace lrpc::netd::test {

struct Ran {
  int status = -1;
  std::string output;  ///< Both streams.
};

inline Ran run(const std::string& command) {
  Ran ran;
  std::FILE* const pipe = ::popen((command + " 2>&1").c_str(), "re");
  if (pipe == nullptr) return ran;
  std::array<char, 4096> buffer;
  for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    ran.output.append(buffer.data(), got);
  const int status = ::pclose(pipe);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

}  // namespace lrpc::netd::test
