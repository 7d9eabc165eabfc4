# For other projects: find_package(lrpc), which has the targets lrpc::client, lrpc::server, lrpc::nameserver, the
# generator lrpc::lrpc-stubgen, and lrpc_generate(); without CMake, pkg-config's lrpc-client and lrpc-server.
include(CMakePackageConfigHelpers)

set(LRPC_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/lrpc)

install(EXPORT lrpc NAMESPACE lrpc:: FILE lrpcTargets.cmake DESTINATION ${LRPC_PACKAGE_DIR})
install(EXPORT lrpc_programs NAMESPACE lrpc:: FILE lrpcPrograms.cmake DESTINATION ${LRPC_PACKAGE_DIR})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/lrpcConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/lrpcConfig.cmake
  INSTALL_DESTINATION ${LRPC_PACKAGE_DIR} PATH_VARS CMAKE_INSTALL_BINDIR)
# Before 1.0 a minor release may break; the stubs and the libraries of one program come from one version anyway.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/lrpcConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/lrpcConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/lrpcConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/LrpcGenerate.cmake
  ${CMAKE_CURRENT_LIST_DIR}/lrpc_fuzz_driver.cpp
  ${CMAKE_CURRENT_LIST_DIR}/LrpcSealed.cmake
  DESTINATION ${LRPC_PACKAGE_DIR})

file(RELATIVE_PATH prefix_from_pkgconfig ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
foreach(directory LIBDIR INCLUDEDIR)
  cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_${directory} BASE_DIRECTORY "\${prefix}"
             OUTPUT_VARIABLE pkgconfig_${directory})
endforeach()
foreach(side client server)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/lrpc.pc.in ${CMAKE_CURRENT_BINARY_DIR}/lrpc-${side}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lrpc-${side}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
